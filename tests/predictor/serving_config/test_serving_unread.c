/* Members of config.json that look like sizes and that nobody asks for are told by name; what is
 * known, and what says nothing of sizes, is not. */
#include "predictor/serving_config/serving_read.h"
#include "made_config.h"

static cd_serving_model m;
static cdmpp_err err;

static const char *const published[] = {
#define M(name, billions, text) text,
#include "published_models.def"
};

static const char *unread(const char *members) {
    char text[2048];
    snprintf(text, sizeof text, MADE_LLAMA ",%s}", members);
    check_status(made_read(text, &m, &err), CDMPP_OK, &err, members, __FILE__, __LINE__);
    return made_note(&m, "not read", true);
}

/* Of published files every member is read, or known to say nothing of sizes. */
TEST(published_ones_have_none) {
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        check_status(made_read(published[i], &m, &err), CDMPP_OK, &err, published[i], __FILE__,
                     __LINE__);
        if (made_note(&m, "not read", true)) fail_msg("%s", made_note(&m, "not read", true));
    }
}

TEST(looks_like_a_size) {
    static const char *const of[] = {"\"extra_latent_size\":256",
                                     "\"per_layer_dim\":64",
                                     "\"num_odd_heads\":2",
                                     "\"side_rank\":8",
                                     "\"my_layers\":[\"a\",\"b\"]",
                                     "\"other_config\":{\"a\":1}",
                                     "\"ffn_ratio\":2.5",
                                     "\"odd_pattern\":\"AB\"",
                                     "\"words\":\"ABAB\"",
                                     "\"use_double_wide_mlp\":true",
                                     "\"num_nextn_predict_layers\":1",
                                     "\"moe_latent_size\":32",
                                     "\"shared_intermediate_size\":128",
                                     "\"hidden_size_per_layer_input\":256",
                                     "\"global_head_dim\":512",
                                     "\"num_global_key_value_heads\":2",
                                     "\"layer_group_size\":8",
                                     "\"swa_num_attention_heads\":64",
                                     "\"num_attention_heads_per_layer\":[4,4,8,8]",
                                     "\"conv_L_cache\":3",
                                     "\"block_ffn_dim_multiplier\":1.5",
                                     "\"mamba_dt_rank\":160",
                                     "\"mlp_hidden_size\":22016",
                                     "\"full_attn_idxs\":[2,3]",
                                     "\"attention_window_size\":2048",
                                     "\"share_expert_dim\":1280",
                                     "\"expert_layer_period\":2",
                                     "\"num_query_heads\":[12,16]",
                                     "\"laurel_rank\":64",
                                     "\"ngram_vocab_size_ratio\":78",
                                     "\"loop_num\":2",
                                     "\"num_kv_reuse_layers\":21",
                                     "\"mlp_expansion_factor\":8.0",
                                     "\"attention_k_eq_v\":true"};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(of[i] + 1, "\""), of[i] + 1);
        const char *said = unread(of[i]);
        if (!said || !strstr(said, key)) fail_msg("%s: %s", key, said ? said : "nothing is said");
    }
}

TEST(says_nothing_of_sizes) {
    assert_null(unread(
        "\"bos_token_id\":128000,\"eos_token_id\":[1,2],\"rope_theta\":500000.0,\"rope_scaling\":{"
        "\"factor\":8.0},\"rms_norm_eps\":1e-5,\"attention_dropout\":0.0,\"use_cache\":true,"
        "\"initializer_range\":0.02,\"architectures\":[\"LlamaForCausalLM\"],\"transformers_"
        "version\":\"4.51.0\",\"hidden_act\":\"silu\",\"attention_bias\":true,\"pretraining_tp\":4,"
        "\"mlp_bias\":true,"
        "\"max_position_embeddings\":131072,\"auto_map\":{\"AutoConfig\":\"x\"},\"routed_scaling_"
        "factor\":2.5,\"_name_or_path\":\"x\",\"num_return_sequences\":2"));
    assert_null(unread("\"other_size\":null,\"no_layers\":[],\"num_none\":0,\"use_double_wide_"
                       "mlp\":false,\"one\":1"));
    /* read of any dense model */
    assert_null(unread("\"sliding_window\":4096,\"max_window_layers\":3"));
}

/* All are in one line, and those that it has no room for are counted; whatever a name has, the line
 * is one. */
TEST(one_line) {
    cd_buf b = {0};
    for (int i = 0; i < 60; i++)
        cd_buf_putf(&b, "%s\"unknown_size_%02d\":%d", i ? "," : "", i, i + 2);
    const char *said = unread(b.p);
    assert_non_null(said);
    assert_non_null(strstr(said, "unknown_size_00, unknown_size_01"));
    assert_non_null(strstr(said, " more: they look like sizes"));
    said = unread("\"odd\\n\\u001b[0m_size\":7");
    assert_non_null(said);
    assert_non_null(strstr(said, "odd??"));
    assert_null(strchr(said, '\n'));
    cd_buf_free(&b);
}

/* A note too many takes the last place and says so. */
TEST(more_than_room) {
    m = (cd_serving_model){0};
    for (int i = 0; i < CD_SERVING_NOTES + 5; i++) cd_serving_note(&m, "note %d", i);
    assert_int_equal(m.n_note, CD_SERVING_NOTES);
    assert_string_equal(m.note[CD_SERVING_NOTES - 2], "note 30");
    assert_non_null(strstr(m.note[CD_SERVING_NOTES - 1], "more to say"));
}

/* Experts behind a narrower product: hand-computed; as wide as the model it is two products
 * more. */
TEST(latent_experts) {
    cd_serving_model plain;
    /* two products of 8 experts */
    const double both = 2 * 64 * 8 * 32, shared = 2 * 64 * 48, router = 64 * 8;
    assert_ok(made_read(MADE_HYBRID "}", &plain, &err));
    assert_ok(made_read(MADE_HYBRID ",\"moe_latent_size\":16}", &m, &err));
    assert_null(made_note(&m, "not read", true));
    assert_close(cd_serving_model_parameters(&plain) - cd_serving_model_parameters(&m),
                 both - (2 * 16 * 8 * 32 + 2 * 64 * 16), 0, 0);
    assert_true(shared + router > 0 && cd_serving_experts_in(&m) < 17 &&
                cd_serving_experts_in(&plain) > 63);
    cd_serving_layout l = {.tp = 2,
                           .pp = 1,
                           .dp = 2,
                           .moe_ep = 2,
                           .base = CD_LLM_OP_T_BF16,
                           .shared = CD_LLM_OP_T_FP8};
    cd_serving_ops o;
    int seen = 0;
    assert_ok(cd_serving_layout_check(&m, &l, &err));
    cd_serving_ops_rest(&m, &l, 8, 8, 16, false, &o);
    for (size_t i = 0; i < o.n; i++) {
        const cd_serving_op *v = &o.v[i];
        if (!strcmp(v->name, "latent_in"))
            assert_close(cd_llm_op_get(&v->r, CD_LLM_OP_P_N), 16, 0, 0),
                assert_int_equal(v->r.type, CD_LLM_OP_T_FP8), seen++;
        if (!strcmp(v->name, "latent_out"))
            assert_close(cd_llm_op_get(&v->r, CD_LLM_OP_P_K), 16, 0, 0), seen++;
        if (v->r.kind == CD_LLM_OP_MOE)
            assert_close(cd_llm_op_get(&v->r, CD_LLM_OP_P_HIDDEN), 16, 0, 0), seen++;
        if (!strcmp(v->name, "dispatch") || !strcmp(v->name, "combine"))
            assert_close(cd_llm_op_get(&v->r, CD_LLM_OP_P_BYTES), 2 * 16 * 16, 0, 0), seen++;
    }
    assert_int_equal(seen, 5);
}

TESTS(NULL, NULL, published_ones_have_none, looks_like_a_size, says_nothing_of_sizes, one_line,
      more_than_room, latent_experts)
