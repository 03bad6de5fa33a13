#pragma once

#ifdef __cplusplus
extern "C" {
#endif

void annotate_in_c(void);

#ifdef __cplusplus
}
#endif
