/* What a file is that was given without an option. */
#include "check.h"
#include "tmp.h"

#include "predictor/network/network.h"

static const struct {
    const char *name, *text;
    cd_network_operand is;
} known[] = {
    {"config.json", "{\"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": 8}",
     CD_NETWORK_OPERAND_LANGUAGE},
    {"c", "\357\273\277 {\"model_type\": \"qwen2\"}", CD_NETWORK_OPERAND_LANGUAGE},
    {"g.json", "{\"schema\": \"cdmpp.netgraph\", \"networks\": []}", CD_NETWORK_OPERAND_GRAPH},
    {"t.json", "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": []}",
     CD_NETWORK_OPERAND_TASKS},
    {"broken.json", "{\"model_type\": ", CD_NETWORK_OPERAND_GRAPH},
    {"list.json", "[1]", CD_NETWORK_OPERAND_GRAPH},
    {"rows.csv", "a,b\n", CD_NETWORK_OPERAND_GRAPH},
    {"m.cdmpp", "CDMPPMDL........", CD_NETWORK_OPERAND_MODEL},
    {"n.onnx", "\10\7\22\7pytorch", CD_NETWORK_OPERAND_NETWORK},
    {"empty", "", CD_NETWORK_OPERAND_NETWORK},
};

TEST(kinds) {
    tmp_dir d = tmp_make();
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const cd_network_operand is =
            cd_network_operand_of(tmp_put(&d, known[k].name, known[k].text, strlen(known[k].text)));
        if (is != known[k].is) print_error("%s\n", known[k].name);
        assert_int_equal(is, known[k].is);
    }
    /* the folder has a config.json of a language model now */
    assert_int_equal(cd_network_operand_of(d.path), CD_NETWORK_OPERAND_LANGUAGE);
    (void)tmp_put(&d, "config.json", "{}", 2);
    assert_int_equal(cd_network_operand_of(d.path), CD_NETWORK_OPERAND_NETWORK);
    assert_int_equal(cd_network_operand_of("resnet-50"), CD_NETWORK_OPERAND_NETWORK);
    tmp_remove(&d);
}

TESTS(NULL, NULL, kinds)
