/* What a file is that a command was given without an option: its content decides, of CSV its name.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/io.h"
#include "predictor/network/network.h"

enum { FIRST = 64, JSON_MAX = 256 << 20 };

static bool ends_in(const char *path, const char *end) {
    const size_t n = strlen(path), k = strlen(end);
    return n > k && !strcmp(path + n - k, end);
}

static bool has(const cd_json *root, const char *key) {
    return root->kind == CD_JSON_OBJ && cd_json_get(root, key);
}

static cd_network_operand of_json(const char *path) {
    cd_arena a = {0};
    const cd_json *root;
    cd_str schema;
    char *text = NULL;
    size_t n;
    cd_network_operand is = CD_NETWORK_OPERAND_GRAPH; /* whose reader says what is wrong with it */
    if (!cd_file_read(path, JSON_MAX, &text, &n, NULL) &&
        !cd_json_parse(&a, text, n, &root, NULL)) {
        if (has(root, "model_type") || has(root, "architectures")) is = CD_NETWORK_OPERAND_LANGUAGE;
        else if (has(root, "schema") && !cd_json_need_str(root, "schema", &schema, NULL) &&
                 cd_str_is(schema, "cdmpp.tasks"))
            is = CD_NETWORK_OPERAND_TASKS;
    }
    cd_mem_free(text);
    cd_arena_free(&a);
    return is;
}

/* A folder as Hugging Face has them: its config.json is the language model. */
static cd_network_operand of_folder(const char *path) {
    cd_buf config = {0};
    cd_buf_putf(&config, "%s/config.json", path);
    const bool is = !config.oom && of_json(config.p) == CD_NETWORK_OPERAND_LANGUAGE;
    cd_buf_free(&config);
    return is ? CD_NETWORK_OPERAND_LANGUAGE : CD_NETWORK_OPERAND_NETWORK;
}

cd_network_operand cd_network_operand_of(const char *path) {
    char first[FIRST] = "";
    struct stat st;
    if (!stat(path, &st) && S_ISDIR(st.st_mode)) return of_folder(path);
    FILE *f = stat(path, &st) || !S_ISREG(st.st_mode) ? NULL : fopen(path, "rb");
    if (!f) return CD_NETWORK_OPERAND_NETWORK;
    const size_t n = fread(first, 1, sizeof first - 1, f);
    (void)fclose(f);
    const char *text = first + (n >= 3 && !memcmp(first, "\357\273\277", 3) ? 3 : 0);
    text += strspn(text, " \t\r\n");
    if (n >= 8 && !memcmp(first, "CDMPPMDL", 8)) return CD_NETWORK_OPERAND_MODEL;
    if (*text == '{') return of_json(path);
    if (ends_in(path, ".csv") || *text == '[') return CD_NETWORK_OPERAND_GRAPH;
    return ends_in(path, ".tasks.json.xz") || ends_in(path, ".task.pkl")
               ? CD_NETWORK_OPERAND_TASKS
               : CD_NETWORK_OPERAND_NETWORK;
}

bool cd_network_operand_is_onnx(const char *path) {
    return ends_in(path, ".onnx") && !access(path, R_OK);
}
