/* params, safetensors, net_file: places, initial values, bytes that come back and
 * bytes that are refused. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "learner/nn/nn.h"
#include "made_batch.h"

TEST(layout) {
    cd_params p = {0}, q = {0};
    cdmpp_err err = {0};
    size_t w, b, end = 0;
    const size_t stat = cd_params_add_stat(&p, "m", 3, CD_INIT_ONE);
    cd_params_add_linear(&p, "a", 100, 7, &w, &b);
    const size_t g = cd_params_add(&p, "g", 5, 0, CD_INIT_ONE, 0);
    assert_ok(cd_params_layout(&p, 1, &err));
    for (size_t i = 0; i < p.n; i++) {
        assert_int_equal((uintptr_t)cd_params_value(&p, i) % 64, 0);
        assert_int_equal(p.param[i].is_stat, i == stat);
        assert_int_equal(p.param[i].off >= p.n_train, i == stat);
    }
    assert_int_equal((uintptr_t)p.grad % 64, 0);
    assert_int_equal(cd_params_count(&p), 712);
    assert_true(p.param[w].decay && !p.param[b].decay && !p.param[g].decay);
    assert_true(p.n_float <= 1024 && p.n_train < p.n_float);
    double most = 0, sum = 0;
    for (size_t i = 0; i < 700; i++) {
        const double v = fabs((double)cd_params_value(&p, w)[i]);
        most = fmax(most, v);
        sum += v;
    }
    assert_close(most, 0.1, 0.02, 0); /* 1/sqrt(100) */
    assert_close(sum / 700, 0.05, 0.1, 0);
    assert_true(cd_params_value(&p, g)[4] == 1 && cd_params_value(&p, stat)[2] == 1);
    for (size_t i = 0; i < p.n; i++)
        end = p.param[i].off + p.param[i].n > end ? p.param[i].off + p.param[i].n : end;
    assert_true(end <= p.n_float);
    cd_params_add_stat(&q, "m", 3, CD_INIT_ONE);
    cd_params_add_linear(&q, "a", 100, 7, &w, &b);
    cd_params_add(&q, "g", 5, 0, CD_INIT_ONE, 0);
    assert_ok(cd_params_layout(&q, 2, &err));
    assert_true(cd_params_value(&p, w)[0] != cd_params_value(&q, w)[0]); /* another seed */
    cd_params_free(&p);
    cd_params_free(&q);
}

TEST(tensors) {
    const float a[6] = {1, 2, 3, 4, 5, -6.5f}, b[1] = {7};
    const cd_tensor t[2] = {{"a.weight", 2, {2, 3}, a}, {"b", 1, {1, 1}, b}};
    const size_t shape[2] = {2, 3}, flat[2] = {6, 1};
    cd_buf out = {0};
    cd_arena arena = {0};
    cdmpp_err err = {0};
    cd_safetensors f;
    float back[6];
    uint64_t header;
    cd_safetensors_write(&out, t, 2, "{\"who\":\"me\"}");
    assert_false(out.oom);
    memcpy(&header, out.p, 8);
    assert_int_equal(header % 8, 0);
    assert_int_equal(8 + header + 28, out.n);
    assert_ok(cd_safetensors_open(&arena, out.p, out.n, &f, &err));
    assert_int_equal(cd_safetensors_count(&f), 2);
    assert_true(cd_str_is(cd_safetensors_meta(&f, "who")->u.s, "me"));
    assert_null(cd_safetensors_meta(&f, "what"));
    assert_ok(cd_safetensors_get(&f, "a.weight", 2, shape, back, &err));
    assert_memory_equal(back, a, sizeof a);
    assert_status(cd_safetensors_get(&f, "a.weight", 1, flat, back, &err), CDMPP_EMODEL);
    assert_status(cd_safetensors_get(&f, "c", 1, flat, back, &err), CDMPP_EMODEL);
    for (size_t n = 0; n < out.n; n++) { /* cut anywhere: refused, or the last tensor is */
        const cdmpp_status st = cd_safetensors_open(&arena, out.p, n, &f, &err);
        if (n < 8 + header) assert_int_equal(st, CDMPP_EPARSE);
        else assert_status(cd_safetensors_get(&f, "b", 1, &flat[1], back, &err), CDMPP_EPARSE);
    }
    memset(out.p, 0xff, 8);
    assert_status(cd_safetensors_open(&arena, out.p, out.n, &f, &err), CDMPP_EPARSE);
    cd_arena_free(&arena);
    cd_buf_free(&out);
}

/* Offsets and types that lie. */
TEST(lies) {
    static const char *const headers[] = {
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,12]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}",
        "{\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}",
        "{\"a\":7}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":2}}"};
    const size_t two = 2;
    float v[2];
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        cd_arena arena = {0};
        cd_safetensors f;
        cd_buf b = {0};
        const uint64_t n = strlen(headers[i]);
        cd_buf_put(&b, (const char *)&n, 8);
        cd_buf_puts(&b, headers[i]);
        cd_buf_put(&b, "\0\0\0\0\0\0\0\0", 8);
        assert_int_equal(cd_safetensors_open(&arena, b.p, b.n, &f, NULL), CDMPP_OK);
        assert_int_not_equal(cd_safetensors_get(&f, "a", 1, &two, v, NULL), CDMPP_OK);
        cd_arena_free(&arena);
        cd_buf_free(&b);
    }
}

/* ---- a whole network ---- */
static void made_scalers(cd_scalers *s, const cd_net_config *spec) {
    const cd_batch_spec b = cd_net_batch_spec(spec, NULL, 0);
    cdmpp_err err = {0};
    assert_ok(cd_scalers_init(s, &b, &err));
    made_floats(s->tok.shift, 2 * s->tok.n, 1);
    made_floats(s->prog.shift, 2 * s->prog.n, 2);
    made_floats(s->dev.shift, 2 * s->dev.n, 3);
}

TEST(network) {
    cdmpp_err err = {0};
    for (int k = 0; k < 5; k++) {
        cd_net_config s = cd_net_config_small(k == 4   ? CD_NET_TLP
                                              : k == 3 ? CD_NET_LSTM
                                              : k      ? CD_NET_TSF
                                                       : CD_NET_MLP);
        cd_net *net = NULL, *back = NULL;
        cd_scalers sc, got;
        cd_buf file = {0}, again = {0};
        s.norm = k == 2 ? CD_NORM_BATCH : CD_NORM_LAYER;
        s.head = k == 2 ? CD_HEAD_FLATTEN : CD_HEAD_SUM;
        s.temperature = 0.1 + 0.2;
        s.program = k == 1;
        s.act = k == 3 ? CD_ACT_ELU : CD_ACT_RELU;
        s.skip = k == 3;
        s.values = 7;
        s.log_values = true;
        s.n_out = 3;
        s.w_dev = 5;
        made_scalers(&sc, &s);
        assert_ok(cd_net_new(&s, 77, &net, &err));
        assert_ok(cd_net_save(net, &sc, &file, &err));
        assert_ok(cd_net_load(file.p, file.n, &back, &got, &err));
        assert_memory_equal(cd_net_params(net)->value, cd_net_params(back)->value,
                            cd_net_params(net)->n_float * sizeof(float));
        assert_true(cd_net_config_of(back)->temperature == s.temperature &&
                    cd_net_config_of(back)->head == s.head);
        assert_true(cd_net_config_of(back)->kind == s.kind &&
                    cd_net_config_of(back)->act == s.act && cd_net_config_of(back)->skip == s.skip);
        /* the others are written as before */
        assert_int_equal(cd_net_config_of(back)->values, k == 4 ? 7 : 0);
        assert_true(cd_net_config_of(back)->log_values == (k == 4));
        assert_ok(cd_net_save(back, &got, &again, &err));
        assert_int_equal(file.n, again.n);
        assert_memory_equal(file.p, again.p, file.n);
        cd_net_free(net);
        cd_net_free(back);
        cd_scalers_free(&sc);
        cd_scalers_free(&got);
        cd_buf_free(&file);
        cd_buf_free(&again);
    }
}

/* Replace the only `from` in the header by `to` of the same length: refused, nothing leaks. */
TEST(spoilt) {
    static const char *const change[][2] = {{"\\\"layers\\\":2", "\\\"layers\\\":0"},
                                            {"\\\"layers\\\":2", "\\\"layers\\\":1"},
                                            {"\\\"ff\\\":192", "\\\"ff\\\":193"},
                                            {"\\\"transformer\\\"", "\\\"transformes\\\""},
                                            {"cdmpp.net", "cdmpp.nut"},
                                            {"output.bias", "output.bios"},
                                            {"\\\"pre_norm\\\":true", "\\\"pre_norm\\\":1111"},
                                            {"\\\"width\\\":96", "\\\"midth\\\":96"}};
    cd_net_config s = cd_net_config_small(CD_NET_TSF);
    cd_net *net = NULL, *back = NULL;
    cd_scalers sc, got;
    cd_buf file = {0};
    cdmpp_err err = {0};
    made_scalers(&sc, &s);
    assert_ok(cd_net_new(&s, 1, &net, &err));
    assert_ok(cd_net_save(net, &sc, &file, &err));
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        const size_t n = strlen(change[i][0]);
        char *at = memmem(file.p, file.n, change[i][0], n);
        assert_non_null(at);
        assert_int_equal(n, strlen(change[i][1]));
        memcpy(at, change[i][1], n);
        assert_int_not_equal(cd_net_load(file.p, file.n, &back, &got, &err), CDMPP_OK);
        assert_null(back);
        memcpy(at, change[i][0], n);
    }
    for (size_t n = 0; n < file.n; n += 1 + file.n / 50)
        assert_int_not_equal(cd_net_load(file.p, n, &back, &got, &err), CDMPP_OK);
    cd_net_free(net);
    cd_scalers_free(&sc);
    cd_buf_free(&file);
}

/* A description that does not say how many values a step has. */
TEST(steps_without_values) {
    cd_net_config s = cd_net_config_small(CD_NET_TLP);
    cd_net *net = NULL, *back = NULL;
    cd_scalers sc, got;
    cd_buf file = {0};
    cdmpp_err err = {0};
    made_scalers(&sc, &s);
    assert_ok(cd_net_new(&s, 1, &net, &err));
    assert_ok(cd_net_save(net, &sc, &file, &err));
    char *at = memmem(file.p, file.n, "\\\"values", 8);
    assert_non_null(at);
    at[2] = 'w';
    assert_status(cd_net_load(file.p, file.n, &back, &got, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "values");
    cd_net_free(net);
    cd_scalers_free(&sc);
    cd_buf_free(&file);
}

/* The published networks have as many numbers as their PyTorch counterparts. */
TEST(published) {
    cd_net_config s = cd_net_config_published();
    cd_net *net = NULL;
    cdmpp_err err = {0};
    s.slots = 5;
    s.device = false;
    assert_ok(cd_net_new(&s, 1, &net, &err));
    assert_int_equal(cd_params_count(cd_net_params(net)), 13726658);
    cd_net_free(net);
    s = cd_net_config_tiramisu();
    s.device = false;
    assert_ok(cd_net_new(&s, 1, &net, &err));
    /* leaf MLP, two LSTMs with one bias each, merge MLP, regression */
    assert_int_equal(cd_params_count(cd_net_params(net)),
                     415730 + 2 * 259920 + 108380 + 36200 + 36180 + 181);
    cd_net_free(net);
    s = cd_net_config_tlp();
    assert_ok(cd_net_new(&s, 1, &net, &err));
    /* up from 14 + 11, attention, two blocks; the decoder: 256, 128, 128, 1 */
    assert_int_equal(cd_params_count(cd_net_params(net)),
                     26 * 64 + 65 * 128 + 129 * 256 + 257 * 256 + 257 * 768 + 257 * 256 +
                         2 * 257 * 256 + 257 * 256 + 257 * 128 + 129 * 128 + 129);
    cd_net_free(net);
}

TESTS(NULL, NULL, layout, tensors, lies, network, spoilt, steps_without_values, published)
