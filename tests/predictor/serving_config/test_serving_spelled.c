/* One fact under several names: any of them is answered, two that agree are one, two that do not
 * are refused. */
#include "predictor/serving_config/serving_read.h"
#include "made_config.h"

static cd_serving_model m, other;
static cdmpp_err err;

/* Names are a relation: whoever is another name of a fact has that fact as its other name, and none
 * has two facts. */
TEST(names_are_mutual) {
    static const char *const key[] = {
        "num_experts", "num_experts_per_tok",   "n_shared_experts", "num_hidden_layers",
        "hidden_size", "num_key_value_heads",   "head_dim",         "bits",
        "ignore",      "sliding_window_pattern"};
    for (size_t k = 0; k < sizeof key / sizeof *key; k++) {
        size_t n = 0;
        for (const char *a; (a = cd_serving_spelled(key[k], n)); n++) {
            bool back = false;
            assert_string_not_equal(a, key[k]);
            for (size_t i = 0; cd_serving_spelled(a, i); i++)
                back |= !strcmp(cd_serving_spelled(a, i), key[k]);
            assert_true(back);
        }
        assert_true(n > 0);
    }
    assert_null(cd_serving_spelled("vocab_size", 0));
}

/* The name of the family, and another one: the same model, and a note. */
TEST(any_name) {
    static const char *const name[] = {"num_experts", "num_local_experts", "moe_num_experts",
                                       "num_routed_experts"};
    char text[1024];
    assert_ok(made_read(MADE_EXPERTS ",\"n_routed_experts\":8}", &other, &err));
    assert_null(made_note(&other, "is called", false));
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        snprintf(text, sizeof text, MADE_EXPERTS ",\"%s\":8}", name[i]);
        assert_ok(made_read(text, &m, &err));
        assert_non_null(made_note(&m, "n_routed_experts is not there: it is called", false));
        assert_close(cd_serving_model_parameters(&m), cd_serving_model_parameters(&other), 0, 0);
        snprintf(text, sizeof text, MADE_EXPERTS ",\"n_routed_experts\":8,\"%s\":8}", name[i]);
        assert_ok(made_read(text, &m, &err));
        assert_null(made_note(&m, "is called", false));
        assert_null(made_note(&m, name[i], true));
        snprintf(text, sizeof text, MADE_EXPERTS ",\"n_routed_experts\":8,\"%s\":16}", name[i]);
        assert_status(made_read(text, &m, &err), CDMPP_ERANGE);
        assert_string_equal(err.key, name[i]);
        assert_non_null(strstr(err.msg, "expected 8, as n_routed_experts"));
    }
    assert_ok(made_read("{\"model_type\":\"llama\"," MADE_BF
                        "\"n_layer\":4,\"n_embd\":64,\"n_head\":4,\"n_head_kv\":2,\"n_inner\":128,"
                        "\"kv_channels\":16,\"vocab_size\":256}",
                        &m, &err));
    assert_close(cd_serving_model_parameters(&m),
                 4 * (64 * 16 * (4 + 4 + 2 * 2) + 3 * 64 * 128) + 2 * 256 * 64, 0, 0);
    /* says that there is none, or nothing */
    assert_ok(made_read(MADE_LLAMA ",\"num_experts\":0,\"n_layer\":null}", &m, &err));
    assert_status(made_read(MADE_LLAMA ",\"num_routed_experts\":8}", &m, &err), CDMPP_EUNSUPPORTED);
}

/* Which layers have experts, in the words of several programs. */
TEST(layers_with_experts) {
    static const struct {
        const char *text;
        double dense;
    } of[] = {{"{\"model_type\":\"glm4_moe\"," MADE_BF MADE_BODY
               ",\"num_experts_per_tok\":2,\"moe_intermediate_size\":32,\"n_routed_experts\":8,"
               "\"mlp_layer_types\":[\"dense\",\"dense\",\"sparse\",\"dense\"]}",
               3},
              {MADE_EXPERTS ",\"n_routed_experts\":8,\"mlp_layer_types\":[\"sparse\",\"sparse\","
                            "\"sparse\",\"dense\"]}",
               1},
              {MADE_EXPERTS ",\"n_routed_experts\":8,\"moe_layers\":[1,3]}", 2},
              {"{\"model_type\":\"ernie4_5_moe\"," MADE_BF MADE_BODY
               ",\"moe_k\":2,\"moe_num_experts\":8,\"moe_intermediate_size\":32,\"moe_layer_start_"
               "index\":1,\"moe_layer_end_index\":2}",
               2},
              {"{\"model_type\":\"ernie4_5_moe\"," MADE_BF MADE_BODY
               ",\"moe_k\":2,\"moe_num_experts\":8,\"moe_intermediate_size\":32,\"moe_layer_start_"
               "index\":1,\"moe_layer_end_index\":-1}",
               1}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        check_status(made_read(of[i].text, &m, &err), CDMPP_OK, &err, of[i].text, __FILE__,
                     __LINE__);
        assert_close(m.dense_layers, of[i].dense, 0, 0);
        assert_close(m.sparse_layers, 4 - of[i].dense, 0, 0);
    }
    assert_status(
        made_read(
            MADE_EXPERTS
            ",\"n_routed_experts\":8,\"mlp_layer_types\":[\"dense\",\"odd\",\"sparse\",\"dense\"]}",
            &m, &err),
        CDMPP_EUNSUPPORTED);
    assert_string_equal(err.key, "mlp_layer_types[1]");
    assert_status(made_read(MADE_EXPERTS ",\"n_routed_experts\":8,\"mlp_layer_types\":[\"dense\"]}",
                            &m, &err),
                  CDMPP_ERANGE);
    assert_status(made_read(MADE_EXPERTS ",\"n_routed_experts\":8,\"moe_layers\":[4]}", &m, &err),
                  CDMPP_ERANGE);
}

/* A list with a word for each layer says how many there are. */
TEST(as_many_layers_as_words) {
    assert_ok(made_read("{\"model_type\":\"nemotron_h\",\"num_hidden_layers\":null," MADE_BF
                        "\"hidden_size\":64,\"num_attention_heads\":4,\"num_key_value_heads\":4,"
                        "\"head_dim\":16,\"vocab_size\":256,\"intermediate_size\":128,"
                        "\"layers_block_type\":[\"attention\",\"mlp\",\"attention\"]}",
                        &m, &err));
    assert_close(m.layers, 3, 0, 0);
    assert_close(m.attention_layers, 2, 0, 0);
    assert_non_null(made_note(&m, "layers_block_type has 3 layers", false));
}

/* Where a part has no type, the error says which and where; the part's other names; errors in it
 * have its name. */
TEST(parts) {
    static const char *const part[] = {"text_config", "llm_config", "language_config"};
    char text[1024], key[80];
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        snprintf(text, sizeof text,
                 "{\"model_type\":\"some_new_vl\",\"%s\":{" MADE_BF MADE_BODY "}}", part[i]);
        snprintf(key, sizeof key, "%s.model_type", part[i]);
        assert_status(made_read(text, &m, &err), CDMPP_ESCHEMA);
        assert_string_equal(err.key, key);
        assert_non_null(strstr(err.msg, "some_new_vl"));
        /* the whole is of a language model's type */
        snprintf(text, sizeof text, "{\"model_type\":\"qwen3\",\"%s\":{" MADE_BF MADE_BODY "}}",
                 part[i]);
        assert_ok(made_read(text, &m, &err));
        assert_string_equal(m.name, "qwen3");
        snprintf(text, sizeof text, "{\"model_type\":\"x\",\"%s\":%s}}", part[i], MADE_LLAMA);
        assert_ok(made_read(text, &m, &err));
        snprintf(text, sizeof text, "{\"model_type\":\"x\",\"%s\":{\"model_type\":\"llama\"}}",
                 part[i]);
        snprintf(key, sizeof key, "%s.num_hidden_layers", part[i]);
        assert_status(made_read(text, &m, &err), CDMPP_ESCHEMA);
        assert_string_equal(err.key, key);
    }
    snprintf(text, sizeof text,
             "{\"model_type\":\"x\",\"thinker_config\":{\"model_type\":\"y\",\"text_config\":%s}}}",
             MADE_LLAMA);
    assert_ok(made_read(text, &m, &err));
    assert_non_null(made_note(&m, "thinker_config.text_config", false));
}

TESTS(NULL, NULL, names_are_mutual, any_name, layers_with_experts, as_many_layers_as_words, parts)
