# llmprof_embed_web(<target>): builds the page application of web/ with npm and packs it into <target>, found at run
# time as llmprof::web::assets(), "app.js" and "app.css".
# LLMPROF_WEB_DIST: a folder that has both already, for machines without Node.js or without a network.
set(LLMPROF_WEB_DIST "" CACHE PATH "app.js and app.css, built elsewhere (tools/build_web.sh); empty: built here with npm")

function(llmprof_embed_web target)
  if(LLMPROF_WEB_DIST)
    llmprof_embed_assets(${target} NAMESPACE web ROOT ${LLMPROF_WEB_DIST} FILES app.js app.css)
    return()
  endif()
  find_program(LLMPROF_NPM npm HINTS ${LLMPROF_THIRD_PARTY}/nodejs/bin)
  if(NOT LLMPROF_NPM)
    message(FATAL_ERROR "npm was not found; it builds the page of `llmprof report --html`. Run tools/setup.sh, or give "
                        "-DLLMPROF_WEB_DIST=FOLDER with an app.js and an app.css that tools/build_web.sh made elsewhere.")
  endif()
  set(out ${CMAKE_BINARY_DIR}/web)
  set(web ${PROJECT_SOURCE_DIR}/web)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${web}/src/*.ts ${web}/src/*.tsx ${web}/src/*.css)
  list(FILTER sources EXCLUDE REGEX "\\.test\\.tsx?$")
  add_custom_command(OUTPUT ${out}/app.js ${out}/app.css
    COMMAND ${PROJECT_SOURCE_DIR}/tools/build_web.sh ${out}
    DEPENDS ${sources} ${web}/package-lock.json ${web}/vite.config.ts ${PROJECT_SOURCE_DIR}/tools/build_web.sh
    COMMENT "Building the page of web/" VERBATIM)
  target_sources(${target} PRIVATE ${out}/app.js ${out}/app.css)
  llmprof_embed_assets(${target} NAMESPACE web ROOT ${out} FILES app.js app.css)
endfunction()
