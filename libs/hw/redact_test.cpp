#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/environment.h"
#include "hw/redact.h"

namespace llmprof::hw {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

TEST(Redact, OptionsWithAValueBehindEquals) {
  EXPECT_EQ(redact({"serve", "--api-key=abc", "--port=80"}), (Words{"serve", "--api-key=***", "--port=80"}));
  EXPECT_EQ(redact({"--api_key=a", "--apiKey=b", "-password=c", "--hf.token=d"}),
            (Words{"--api_key=***", "--apiKey=***", "-password=***", "--hf.token=***"}));
  EXPECT_EQ(redact({"--password=a b & c"}), Words{"--password=***"});
}

TEST(Redact, OptionsWithTheValueInTheNextArgument) {
  EXPECT_EQ(redact({"x", "--token", "abc", "--model", "m"}), (Words{"x", "--token", "***", "--model", "m"}));
  EXPECT_EQ(redact({"--token", "-Aq3/abc"}), (Words{"--token", "***"}));         // a value may begin with a dash
  EXPECT_EQ(redact({"--token", "--verbose"}), (Words{"--token", "--verbose"}));  // but a flag is no value
  EXPECT_EQ(redact({"--use-auth-token", "-v", "x"}), (Words{"--use-auth-token", "-v", "x"}));
  EXPECT_EQ(redact({"--token"}), Words{"--token"});
}

TEST(Redact, AssignmentsOfVariables) {
  EXPECT_EQ(redact({"env", "HF_TOKEN=abc", "AWS_SECRET_ACCESS_KEY=x/y+z", "DB_PASSWORD=a b", "N=1", "prog"}),
            (Words{"env", "HF_TOKEN=***", "AWS_SECRET_ACCESS_KEY=***", "DB_PASSWORD=***", "N=1", "prog"}));
}

TEST(Redact, CodeGivenWithDashC) {
  EXPECT_EQ(redact({"sh", "-c", "HF_TOKEN=abc python serve.py --api-key=k --token t --port 80"}),
            (Words{"sh", "-c", "HF_TOKEN=*** python serve.py --api-key=*** --token *** --port 80"}));
  EXPECT_EQ(redact({"python3", "-c", "login(token=\"ab cd\", user='u'); d = {'password': 'pw', 'n': 3}"}),
            (Words{"python3", "-c", "login(token=\"***\", user='u'); d = {'password': '***', 'n': 3}"}));
  EXPECT_EQ(redact({"python3", "-c", "run(['x', '--token', 'abc'])"}),
            (Words{"python3", "-c", "run(['x', '--token', '***'])"}));
}

TEST(Redact, Urls) {
  EXPECT_EQ(redact({"https://bob:pw@host/x?y=1"}), Words{"https://***@host/x?y=1"});
  EXPECT_EQ(redact({"--proxy=http://user:p@ss@h:80/"}), Words{"--proxy=http://***@h:80/"});
  EXPECT_EQ(redact({"git+https://ghp_x@github.com/a/b"}), Words{"git+https://***@github.com/a/b"});
  EXPECT_EQ(redact({"https://h/p?access_token=abc&x=1&sig=2"}), Words{"https://h/p?access_token=***&x=1&sig=2"});
  EXPECT_EQ(redact({"https://h/@scope/pkg"}), Words{"https://h/@scope/pkg"});
}

TEST(Redact, HeadersAndUsers) {
  EXPECT_EQ(redact({"curl", "-H", "Authorization: Bearer abc.def ghi"}), (Words{"curl", "-H", "Authorization: ***"}));
  EXPECT_EQ(redact({"-H", "X-Api-Key: abc"}), (Words{"-H", "X-Api-Key: ***"}));
  EXPECT_EQ(redact({"-H", "Cookie: a=1; b=2"}), (Words{"-H", "Cookie: ***"}));
  EXPECT_EQ(redact({"curl", "-u", "bob:pw", "x"}), (Words{"curl", "-u", "bob:***", "x"}));
  EXPECT_EQ(redact({"docker", "run", "-u", "1000:1000"}), (Words{"docker", "run", "-u", "1000:1000"}));
  EXPECT_EQ(redact({"python", "-u", "main.py"}), (Words{"python", "-u", "main.py"}));
}

TEST(Redact, TokensOfKnownServicesAnywhere) {
  for (const char* token : {"hf_AbCdEf123456", "sk-proj-Abc123_def", "ghp_0123456789abcdef", "github_pat_11ABC_def",
                            "glpat-abc-123X", "xoxb-12-34-AbCd", "nvapi-Abc123", "AKIAIOSFODNN7EXAMPLE",
                            "AIzaSyA0123456789012345678901234567890", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc"}) {
    const std::string text = redact_text(std::string("say '") + token + "' twice");
    EXPECT_EQ(text, "say '***' twice") << token;
  }
}

TEST(Redact, PrivateKeys) {
  EXPECT_EQ(redact({"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"}), Words{"***"});
}

TEST(Redact, LeavesTheWordsOfLanguageModelsAlone) {
  const Words arguments{"vllm",
                        "serve",
                        "--tokenizer",
                        "meta-llama/Llama-3.2-1B",
                        "--max-new-tokens",
                        "64",
                        "--max-tokens=5",
                        "--pad-token-id",
                        "0",
                        "--tokens",
                        "128",
                        "--eos-token=</s>",
                        "--num-tokens-per-batch=9",
                        "TOKENIZERS_PARALLELISM=false",
                        "hf_transfer",
                        "sk-learn",
                        "--token-file",
                        "/run/secrets.txt",
                        "--sort-key",
                        "name",
                        "monkey=1"};
  EXPECT_EQ(redact(arguments), arguments);
}

TEST(Redact, JsonInAnArgument) {
  EXPECT_EQ(redact({R"({"api_key": "abc", "max_tokens": 5})"}), Words{R"({"api_key": "***", "max_tokens": 5})"});
  EXPECT_EQ(redact({R"("{\"password\": \"abc\"}")"}), Words{R"("{\"password\": \"***\"}")"});
}

TEST(Redact, NoSecretSurvivesInAnyPosition) {
  // One secret value behind every way to name it, alone, quoted and inside a longer text.
  for (const char* form : {"--api-key=@", "--secret @", "PASSWORD=@", "client_secret: @", "x?token=@", "Bearer @",
                           "--auth=@", "{\"privateKey\":\"@\"}", "https://u:@@h/", "AUTHORIZATION=@", "db_pass='@'"}) {
    std::string text(form);
    text.replace(text.find('@'), 1, "s3cretV4lue");
    for (const std::string& around :
         {std::string("%"), std::string("run % --port 1"), std::string("'%'"), std::string("a;%;b")}) {
      std::string whole = around;
      whole.replace(whole.find('%'), 1, text);
      EXPECT_THAT(redact({"sh", "-c", whole}).back(), Not(HasSubstr("s3cretV4lue"))) << whole;
      EXPECT_THAT(redact({whole}).back(), Not(HasSubstr("s3cretV4lue"))) << whole;
    }
  }
}

TEST(Redact, SurvivesEveryCutOfAnUglyText) {
  const std::string ugly = "--token 'a\\'b\" https://u:p@h?key==x \\\"password\\\":\\\"y\\\" Bearer \xff\xfe eyJ -----";
  for (std::size_t length = 0; length <= ugly.size(); ++length) {
    (void)redact({ugly.substr(0, length), ugly.substr(length)});
    (void)redact_text(ugly.substr(length));
  }
}

TEST(Redact, Variables) {
  EXPECT_EQ(redact_variable("HF_TOKEN", "abc"), "***");
  EXPECT_EQ(redact_variable("OMP_NUM_THREADS", "2"), "2");
  EXPECT_EQ(redact_variable("HTTP_PROXY", "http://u:p@h:1"), "http://***@h:1");
}

}  // namespace
}  // namespace llmprof::hw
