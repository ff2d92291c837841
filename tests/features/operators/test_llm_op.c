/* llm_op: tables of operators of language models, in our columns and in those of aiconfigurator. */
#include "features/operators/operators.h"
#include "base/io/io.h"
#include "check.h"
#include "fault.h"
#include "tmp.h"

#include <hdf5.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    tmp_dir dir;
    cd_dict names;
    cd_op_reader *r;
    cd_llm_op_record o;
    const char *device;
    bool more, no_time;
    cdmpp_err err;
} fixture;

static cdmpp_status start(fixture *f, const char *name, const char *text) {
    *f = (fixture){.dir = tmp_make()};
    return cd_llm_op_reader_open(tmp_put(&f->dir, name, text, strlen(text)), &f->names, &f->r,
                                 &f->err);
}

static cdmpp_status next(fixture *f) {
    f->err = (cdmpp_err){0};
    return cd_llm_op_reader_next(f->r, &f->o, &f->device, &f->more, &f->no_time, &f->err);
}

static void stop(fixture *f) {
    cd_op_reader_close(f->r);
    cd_dict_free(&f->names);
    tmp_remove(&f->dir);
}

TEST(our_columns) {
    fixture f;
    cdmpp_err err = {0};
    assert_ok(start(&f, "t.csv",
                    "op,device,stack,kernel,dtype,m,n,k,latency_ms,num_gpus,message_bytes\n"
                    "gemm,h100,vllm-1,,fp8_block,8,512,256,0.5,,\n"
                    "all_gather,\"L40S\",,NCCL,,,,,,4,1000\n"));
    assert_ok(next(&f));
    assert_true(f.o.kind == CD_LLM_OP_GEMM && f.o.type == CD_LLM_OP_T_FP8_BLOCK &&
                f.o.kv == f.o.type);
    assert_true(f.o.size[0] == 8 && f.o.size[1] == 512 && f.o.size[2] == 256 && f.o.size[3] == 1);
    assert_close(f.o.latency_s, 5e-4, 1e-12, 0);
    assert_string_equal(f.device, "h100");
    assert_string_equal(f.names.text[f.o.stack], "vllm-1");
    assert_int_equal(f.o.kernel, 0);
    assert_ok(next(&f));
    assert_true(f.o.kind == CD_LLM_OP_ALL_GATHER && f.o.size[0] == 1000 && f.o.size[1] == 4 &&
                f.o.latency_s == 0);
    assert_close(cd_llm_op_get(&f.o, CD_LLM_OP_P_GPUS), 4, 0, 0);
    assert_close(cd_llm_op_get(&f.o, CD_LLM_OP_P_HEADS), 0, 0, 0);
    assert_string_equal(f.device, "L40S");
    assert_ok(next(&f));
    assert_false(f.more);
    stop(&f);
}

/* The table and the device are named by the file and its folder; the cached tokens of a decode are
 * isl + step - 1. */
TEST(columns_of_others) {
    static const char head[] =
        "stack\tkernel_source\tnum_heads\tnum_key_value_heads\thead_dim\twindow_size\tattn_"
        "dtype\tkv_cache_dtype\tbatch_size\tstep\tisl\tlatency_s\n";
    fixture f;
    cdmpp_err err = {0};
    cd_buf b = {0};
    f = (fixture){.dir = tmp_make()};
    (void)mkdir(tmp_path(&f.dir, "my_gpu"), 0700);
    cd_buf_putf(&b, "%strtllm-1\tk\t8\t2\t128\t\tbfloat16\tfp8\t4\t1023\t1\t1e-5\n", head);
    assert_ok(cd_llm_op_reader_open(tmp_put(&f.dir, "my_gpu/generation_attention.tsv", b.p, b.n),
                                    &f.names, &f.r, &err));
    assert_ok(next(&f));
    assert_true(f.o.kind == CD_LLM_OP_DECODE && f.o.type == CD_LLM_OP_T_BF16 &&
                f.o.kv == CD_LLM_OP_T_FP8);
    assert_true(f.o.size[0] == 1023 && f.o.size[1] == 4 && f.o.size[2] == 8 && f.o.size[3] == 2 &&
                f.o.size[4] == 128 && f.o.size[5] == 0);
    assert_string_equal(f.device, "my_gpu");
    stop(&f);
    cd_buf_free(&b);
    assert_ok(start(&f, "nccl.tsv",
                    "op_name\tnccl_dtype\tnum_gpus\tmessage_size\tlatency_"
                    "s\nalltoall\thalf\t8\t256\t1e-5\nall_reduce\tint8\t2\t256\t1e-5\n"));
    assert_ok(next(&f));
    assert_true(f.o.kind == CD_LLM_OP_ALL_TO_ALL && f.o.size[0] == 512 && f.o.size[1] == 8 &&
                f.o.type == CD_LLM_OP_T_F16);
    assert_ok(next(&f));
    assert_true(f.o.kind == CD_LLM_OP_ALL_REDUCE && f.o.size[0] == 256);
    stop(&f);
    assert_ok(start(&f, "mla_bmm.tsv",
                    "op_name\tnum_heads\tnum_tokens\tlatency_s\nmla_gen_pre\t16\t3\t1e-5\nmla_gen_"
                    "post\t16\t3\t1e-5\n"));
    assert_ok(next(&f));
    assert_true(f.o.kind == CD_LLM_OP_GEMM && f.o.size[0] == 3 && f.o.size[1] == 512 &&
                f.o.size[2] == 128 && f.o.size[3] == 16);
    assert_ok(next(&f));
    assert_true(f.o.size[1] == 128 && f.o.size[2] == 512);
    stop(&f);
}

TEST(experts) {
    fixture f;
    cdmpp_err err = {0};
    assert_ok(start(&f, "moe.csv",
                    "num_tokens,hidden_size,inter_size,topk,num_experts,distribution,latency_s\n"
                    "8,64,32,2,4,power_law_1.2,1\n8,64,32,2,4,balanced,1\n8,64,32,8,4,balanced,"
                    "1\n8,64,32,2,4,zipf,1\n"));
    assert_ok(next(&f));
    assert_close(f.o.skew, 1.2, 1e-12, 0);
    assert_true(f.o.size[5] == 1 && f.o.size[6] == 1);
    const cd_llm_op_record first = f.o;
    assert_ok(next(&f));
    assert_true(f.o.skew == 0 && !cd_llm_op_same(&first, &f.o));
    assert_status(next(&f), CDMPP_ERANGE);
    assert_string_equal(f.err.key, "topk");
    assert_status(next(&f), CDMPP_EUNSUPPORTED);
    assert_string_equal(f.err.key, "distribution");
    stop(&f);
}

/* Each bad line has its reason, and reading goes on. */
TEST(bad_lines) {
    static const struct {
        const char *row, *key;
        cdmpp_status st;
        bool no_time;
    } bad[] = {{"gemm,bfloat16,1,2,3,0", "latency_s", CDMPP_ERANGE, true},
               {"gemm,bfloat16,1,2,3,-1", "latency_s", CDMPP_ERANGE, true},
               {"gemm,bfloat16,1,2,3,x", "latency_s", CDMPP_ESCHEMA, false},
               {"gemm,bfloat16,1,2,3,nan", "latency_s", CDMPP_ESCHEMA, false},
               {"gemm,bfloat16,1,2,3,1e9", "latency_s", CDMPP_ERANGE, false},
               {"gemm,bf17,1,2,3,1", "dtype", CDMPP_EUNSUPPORTED, false},
               {"gemm,bfloat16,1.5,2,3,1", "m", CDMPP_ERANGE, false},
               {"gemm,bfloat16,0,2,3,1", "m", CDMPP_ERANGE, false},
               {"gemm,bfloat16,1,,3,1", "n", CDMPP_ESCHEMA, false},
               {"gem,bfloat16,1,2,3,1", "op", CDMPP_EUNSUPPORTED, false},
               {"gemm,bfloat16,1,2,3", "", CDMPP_EPARSE, false}};
    fixture f;
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_buf_puts(&b, "op,dtype,m,n,k,latency_s\n");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) cd_buf_putf(&b, "%s\n", bad[i].row);
    cd_buf_puts(&b, "gemm,bfloat16,1,2,3,1\n");
    assert_ok(start(&f, "t.csv", b.p));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_status(next(&f), bad[i].st);
        assert_string_equal(f.err.key, bad[i].key);
        assert_int_equal(f.err.line, i + 2);
        assert_int_equal(f.no_time, bad[i].no_time);
        assert_true(f.more);
    }
    assert_ok(next(&f));
    assert_true(f.more && f.o.latency_s == 1 && !f.no_time);
    stop(&f);
    cd_buf_free(&b);
    assert_status(start(&f, "other.csv", "m,n,k\n"), CDMPP_ESCHEMA);
    stop(&f);
    assert_status(start(&f, "gemm.csv", ""), CDMPP_ESCHEMA);
    stop(&f);
    assert_ok(start(&f, "t.csv",
                    "op,num_heads,num_key_value_heads,head_dim,batch_size,past\nattention_decode,8,"
                    "16,64,1,5\n"));
    assert_status(next(&f), CDMPP_ERANGE);
    assert_string_equal(f.err.key, "num_key_value_heads");
    stop(&f);
}

/* ---- HDF5 ---- */
static void put_numbers(hid_t file, const char *name, const double *v, hsize_t n, int rank) {
    const hsize_t dim[] = {n, 1};
    const hid_t space = H5Screate_simple(rank, dim, NULL),
                set = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT,
                                 H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
    H5Dclose(set);
    H5Sclose(space);
}

/* size 0: texts of any length, v is a list of pointers. */
static void put_texts(hid_t file, const char *name, const void *v, hsize_t n, size_t size) {
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &n, NULL);
    H5Tset_size(type, size ? size : H5T_VARIABLE);
    H5Tset_strpad(type, size ? H5T_STR_NULLPAD : H5T_STR_NULLTERM);
    const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Tclose(type);
}

enum { H5_ROWS = 1500 }; /* more than a block */
static const char *put_h5(tmp_dir *dir, const char *name, int wrong) {
    static double m[H5_ROWS], nk[H5_ROWS], s[H5_ROWS], batches[H5_ROWS];
    static const char *stack[H5_ROWS];
    static char device[H5_ROWS][4];
    const char *path = tmp_path(dir, name);
    const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    for (int i = 0; i < H5_ROWS; i++) {
        m[i] = i == 700 ? 0.5 : i + 1;
        nk[i] = 64, s[i] = i == 3 ? (double)NAN : 1e-6 * (i + 1),
        batches[i] = i % 2 ? (double)NAN : 2;
        stack[i] = i == 1200 ? "trtllm-2" : "";
        memcpy(device[i], i % 2 ? "h100" : "l40s", 4);
    }
    put_numbers(file, "M", m, H5_ROWS, 1);
    put_numbers(file, "n", nk, wrong == 1 ? H5_ROWS - 1 : H5_ROWS, 1);
    put_numbers(file, "k", nk, H5_ROWS, wrong == 2 ? 2 : 1);
    put_numbers(file, "latency_s", s, H5_ROWS, 1);
    put_numbers(file, "batches", batches, H5_ROWS, 1);
    put_numbers(file, "other", m, 3, 1);
    put_texts(file, "stack", stack, H5_ROWS, 0);
    put_texts(file, "device", device, H5_ROWS, 4);
    H5Gclose(H5Gcreate2(file, "kernel", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(file);
    return path;
}

TEST(hdf5) {
    fixture f = {.dir = tmp_make()};
    int n = 0, bad = 0;
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_reader_open(put_h5(&f.dir, "gemm.h5", 0), &f.names, &f.r, &f.err));
    for (f.more = true; f.more; n += f.more) {
        const cdmpp_status st = next(&f);
        if (!f.more) break;
        if (st) { /* half a row of a product */
            bad++;
            assert_true(st == CDMPP_ERANGE && f.err.line == 701);
            assert_string_equal(f.err.key, "m");
            continue;
        }
        assert_true(f.o.size[0] > n + 0.5 && f.o.size[0] < n + 1.5 && f.o.size[1] > 63 &&
                    f.o.size[3] < (n % 2 ? 1.5 : 2.5));
        assert_true(f.o.latency_s > 0 || n == 3);
        assert_string_equal(f.device, n % 2 ? "h100" : "l40s");
        assert_string_equal(f.names.text[f.o.stack], n == 1200 ? "trtllm-2" : "");
    }
    assert_true(n == H5_ROWS && bad == 1);
    assert_ok(next(&f)); /* and stays at the end */
    assert_false(f.more);
    cd_op_reader_close(f.r);
    for (int wrong = 1; wrong <= 2; wrong++)
        assert_status(
            cd_llm_op_reader_open(put_h5(&f.dir, "gemm.hdf5", wrong), &f.names, &f.r, &f.err),
            CDMPP_ESCHEMA);
    assert_string_equal(f.err.key, "k");
    assert_status(
        cd_llm_op_reader_open(tmp_put(&f.dir, "gemm.h5", "no", 2), &f.names, &f.r, &f.err),
        CDMPP_EPARSE);
    assert_status(cd_llm_op_reader_open(tmp_path(&f.dir, "none.h5"), &f.names, &f.r, &f.err),
                  CDMPP_EIO);
    const char *path = put_h5(&f.dir, "gemm.h5", 0);
    FAULT_SWEEP(v, 3) {
        cd_dict names = {0};
        cd_op_reader *r = NULL;
        v.st = cd_llm_op_reader_open(path, &names, &r, &v.err);
        if (!v.st) v.st = cd_llm_op_reader_next(r, &f.o, &f.device, &f.more, &f.no_time, &v.err);
        cd_op_reader_close(r);
        cd_dict_free(&names);
    }
    cd_dict_free(&f.names);
    tmp_remove(&f.dir);
}

TEST(named_values) {
    cd_dict names = {0};
    cdmpp_err err = {0};
    uint32_t k, vllm;
    cd_llm_op_record r;
    const char *device;
    assert_ok(cd_dict_add(&names, (cd_str){"", 0}, &k, &err));
    assert_ok(cd_dict_add(&names, (cd_str){"vllm-1", 6}, &vllm, &err));
    assert_ok(cd_llm_op_names_close(&names, &err));
    const size_t n = names.n;
    const cd_op_named gemm[] = {{"OP", "gemm", 0},   {"device", "h100", 0}, {"stack", "vllm-1", 0},
                                {"dtype", "fp8", 0}, {"m", NULL, 16},       {"n", "32", 0},
                                {"k", NULL, 64},     {"batches", NULL, NAN}};
    assert_ok(cd_llm_op_from_named(gemm, 8, &names, &r, &device, &err));
    assert_true(r.kind == CD_LLM_OP_GEMM && r.type == CD_LLM_OP_T_FP8 && r.size[0] == 16 &&
                r.size[1] == 32 && r.size[2] == 64 && r.size[3] == 1);
    assert_true(r.stack == vllm && r.kernel == 0);
    assert_string_equal(device, "h100");
    /* names that no table has share the number of their library, or that of all others; none is
     * added */
    const struct {
        const char *stack, *is;
    } other[] = {{"vllm-9", "vllm-?"}, {"vllm", "vllm"}, {"sglang-1", "?"}};
    for (size_t i = 0; i < 3; i++) {
        const cd_op_named v[] = {
            {"op", "norm", 0}, {"m", NULL, 1}, {"n", NULL, 1}, {"stack", other[i].stack, 0}};
        assert_ok(cd_llm_op_from_named(v, 4, &names, &r, &device, &err));
        assert_string_equal(names.text[r.stack], other[i].is);
    }
    assert_int_equal(names.n, n);
    const struct {
        cd_op_named v[3];
        cdmpp_status st;
        const char *key;
    } bad[] = {
        {{{"op", "gemm", 0}, {"dtyp", "fp8", 0}, {"m", NULL, 1}}, CDMPP_ESCHEMA, ""},
        {{{"op", "gemm", 0}, {"m", NULL, 1}, {"M", NULL, 2}}, CDMPP_ESCHEMA, "M"},
        {{{"op", "norm", 0}, {"m", NULL, 1}, {"latency_s", NULL, 1}}, CDMPP_ESCHEMA, "latency_s"},
        {{{"m", NULL, 1}, {"n", NULL, 1}, {"k", NULL, 1}}, CDMPP_ESCHEMA, "op"},
        {{{"op", "norm", 0}, {"m", NULL, 1.5}, {"n", NULL, 1}}, CDMPP_ERANGE, "m"},
        {{{"op", "norm", 0}, {"m", NULL, INFINITY}, {"n", NULL, 1}}, CDMPP_ESCHEMA, "m"},
        {{{"op", NULL, 3}, {"m", NULL, 1}, {"n", NULL, 1}}, CDMPP_ESCHEMA, "op"},
        {{{"op", "norm", 0}, {"m", NULL, 1}, {"dtype", "fp7", 0}}, CDMPP_EUNSUPPORTED, "dtype"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err = (cdmpp_err){0};
        assert_status(cd_llm_op_from_named(bad[i].v, 3, &names, &r, &device, &err), bad[i].st);
        assert_string_equal(err.key, bad[i].key);
    }
    const struct {
        cd_op_named v[8];
        size_t n;
        const char *key, *msg;
    } odd[] = {
        {{{"op", "gemm", 0}, {"latency_ms", NULL, 1}}, 2, "latency_ms", "a question has no time"},
        {{{"op", "gemm", 0}, {"op_name", "gemm", 0}}, 2, "op_name", "it comes twice"},
        {{{"op", "gemm", 0}, {"qqqqqqqqqqqqqqq", NULL, 1}},
         2,
         "",
         "unknown member 'qqqqqqqqqqqqqqq'"},
        {{{"op", "gemm", 0}, {"dtype", NULL, 3}},
         2,
         "dtype",
         "expected a text, found the number 3"},
        {{{"op", "gemm", 0}, {"kv_dtype", NULL, 3}},
         2,
         "kv_dtype",
         "expected a text, found the number 3"},
        {{{"op", "gemm", 0}, {"kv_dtype", "fp7", 0}},
         2,
         "kv_dtype",
         "unknown type 'fp7' of the cache"},
        {{{"op", "gemm", 0}, {"distribution", NULL, 3}},
         2,
         "distribution",
         "expected a text, found the number 3"},
        {{{"op", "moe", 0}, {"distribution", "power_law_x", 0}},
         2,
         "distribution",
         "expected balanced or power_law_A, found 'power_law_x'"},
        {{{"op", "moe", 0}, {"distribution", "power_law_11", 0}},
         2,
         "distribution",
         "expected balanced or power_law_A, found 'power_law_11'"},
        {{{"op", "moe", 0}, {"distribution", "power_law_-1", 0}},
         2,
         "distribution",
         "expected balanced or power_law_A, found 'power_law_-1'"},
        {{{"op", "moe", 0}, {"distribution", "skewed", 0}},
         2,
         "distribution",
         "expected balanced or power_law_A, found 'skewed'"},
        {{{"op", "mla_gen_pre", 0}, {"num_tokens", NULL, 4}, {"num_heads", NULL, 0.5}},
         3,
         "num_heads",
         NULL},
        {{{"op", "scale_matrix", 0}, {"m", NULL, 4}}, 2, "k", NULL},
        {{{"op", "moe", 0},
          {"tokens", NULL, 4},
          {"hidden", NULL, 64},
          {"inter", NULL, 64},
          {"topk", NULL, 2},
          {"experts", NULL, 4},
          {"moe_ep_size", NULL, 8}},
         7,
         "moe_ep_size",
         "expected at most 4, the experts, found 8"},
        {{{"op", "moe", 0},
          {"tokens", NULL, 4},
          {"hidden", NULL, 64},
          {"inter", NULL, 64},
          {"topk", NULL, 5},
          {"experts", NULL, 4}},
         6,
         "topk",
         "expected at most 4, the experts, found 5"},
        {{{"op", "norm", 0}, {"m", NULL, 1}, {"n", NULL, 1}, {"kernel", NULL, 3}},
         4,
         "kernel",
         "expected a text, found the number 3"},
        {{{"op", "norm", 0}, {"m", NULL, 1}, {"n", NULL, 1}, {"stack", NULL, 3}},
         4,
         "stack",
         "expected a text, found the number 3"},
        {{{"op", "norm", 0}, {"m", NULL, 1}, {"n", NULL, 1}, {"device", NULL, 3}},
         4,
         "device",
         "expected a text, found the number 3"},
        {{{"op", "all_reduce", 0}, {"num_gpus", NULL, 1}, {"bytes", NULL, 64}},
         3,
         "num_gpus",
         "expected 2 GPUs or more, found 1"},
        {{{"op", "all_reduce", 0}, {"num_gpus", NULL, 2}, {"message_size", NULL, 1e300}},
         3,
         "message_size",
         "expected 1..2^40 bytes, found 2e+300"},
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        err = (cdmpp_err){0};
        const cdmpp_status st = cd_llm_op_from_named(odd[i].v, odd[i].n, &names, &r, &device, &err);
        if (!st || strcmp(err.key, odd[i].key) || (odd[i].msg && strcmp(err.msg, odd[i].msg)))
            fail_msg("%zu: %d, %s: %s", i, (int)st, err.key, err.msg);
    }
    char longest[300];
    memset(longest, 'x', sizeof longest - 1), longest[sizeof longest - 1] = 0;
    const cd_op_named scale[] = {
        {"op", "scale_matrix", 0}, {"m", NULL, 4}, {"k", NULL, 8}, {"stack", longest, 0}};
    assert_ok(cd_llm_op_from_named(scale, 4, &names, &r, &device, &err));
    assert_true(r.kind == CD_LLM_OP_ELEMENTWISE && r.size[0] == 4 && r.size[1] == 8); /* m of k */
    assert_string_equal(names.text[r.stack], "?");
    cd_dict_free(&names);
    FAULT_SWEEP(f, 1) {
        cd_dict d = {0};
        f.st = cd_llm_op_names_close(&d, &f.err);
        cd_dict_free(&d);
    }
}

/* The file's name is the operator, its folder the device, where no column says them. */
TEST(names_of_files) {
    static const struct {
        const char *path;
        cdmpp_status st;
        const char *msg;
    } v[] = {{"README.md", CDMPP_ESCHEMA,
              "expected a column op, or a file that is called by an operator; found 'README'"},
             {"tests/README.md", CDMPP_ESCHEMA,
              "expected a column op, or a file that is called by an operator; found 'README'"},
             {"/none.csv", CDMPP_EIO, NULL}};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        cd_dict names = {0};
        cd_op_reader *r = NULL;
        cdmpp_err err = {0};
        assert_status(cd_llm_op_reader_open(v[i].path, &names, &r, &err), v[i].st);
        assert_null(r);
        assert_true(!v[i].msg || !strcmp(err.msg, v[i].msg));
        cd_dict_free(&names);
    }
    tmp_dir dir = tmp_make();
    cd_buf b = {0};
    cd_dict names = {0};
    cd_op_reader *r = NULL;
    cd_llm_op_record o;
    cdmpp_err err = {0};
    const char *device;
    bool more = true, no_time;
    for (int i = 0; i < 200; i++) cd_buf_puts(&b, "x");
    cd_buf_puts(&b, ".csv");
    const char *path = tmp_put(&dir, b.p, "\xef\xbb\xbfop,m,n,latency_s\n \t\nnorm,1,2,3\n",
                               strlen("xxxop,m,n,latency_s\n \t\nnorm,1,2,3\n"));
    assert_ok(cd_llm_op_reader_open(path, &names, &r, &err));
    assert_ok(cd_llm_op_reader_next(r, &o, &device, &more, &no_time, &err));
    assert_true(more && o.size[0] == 1 && o.size[1] == 2);
    assert_ok(cd_llm_op_reader_next(r, &o, &device, &more, &no_time, &err));
    assert_false(more);
    cd_op_reader_close(r);
    cd_buf_clear(&b);
    for (int i = 0; i < 400; i++) cd_buf_puts(&b, "x\t"); /* more fields than a line may have */
    path = tmp_put(&dir, "t.tsv", b.p, b.n);
    assert_status(cd_llm_op_reader_open(path, &names, &r, &err), CDMPP_ERANGE);
    assert_non_null(strstr(err.msg, "expected at most"));
    assert_int_equal(err.line, 1);
    cd_buf_clear(&b);
    cd_buf_puts(&b, "op,m,n,latency_s,stack\n"); /* more names than a number of two bytes counts */
    for (int i = 0; i < 65536; i++) cd_buf_putf(&b, "norm,1,2,3,s%d\n", i);
    cd_dict_free(&names);
    names = (cd_dict){0};
    err = (cdmpp_err){0};
    assert_ok(cd_llm_op_reader_open(tmp_put(&dir, "u.csv", b.p, b.n), &names, &r, &err));
    for (int i = 0; i < 65535; i++)
        assert_ok(cd_llm_op_reader_next(r, &o, &device, &more, &no_time, &err));
    assert_status(cd_llm_op_reader_next(r, &o, &device, &more, &no_time, &err), CDMPP_ERANGE);
    assert_string_equal(err.msg, "more than 65535 names of stacks and kernels");
    assert_int_equal(err.line, 65537);
    cd_op_reader_close(r);
    cd_dict_free(&names);
    cd_buf_free(&b);
    tmp_remove(&dir);
}

TEST(manual) {
    char *doc;
    size_t n;
    cd_buf b = {0};
    cdmpp_err err = {0};
    cd_llm_op_doc(&b);
    assert_ok(cd_file_read("docs/reference/llm-operators.md", 0, &doc, &n, &err));
    if (!strstr(doc, b.p)) fail_msg("docs/reference/llm-operators.md should have\n%s", b.p);
    cd_mem_free(doc);
    cd_buf_free(&b);
}

TEST(refused) {
    static const char text[] = "op,stack,m,n,k,latency_s\ngemm,a,1,2,3,1\ngemm,b,1,2,3,1\n";
    tmp_dir dir = tmp_make();
    const char *path = tmp_put(&dir, "t.csv", text, sizeof text - 1);
    FAULT_SWEEP(f, 3) {
        cd_dict names = {0};
        cd_op_reader *r = NULL;
        cd_llm_op_record o;
        const char *device;
        bool more = true, no_time;
        f.st = cd_llm_op_reader_open(path, &names, &r, &f.err);
        while (!f.st && more) f.st = cd_llm_op_reader_next(r, &o, &device, &more, &no_time, &f.err);
        cd_op_reader_close(r);
        cd_dict_free(&names);
    }
    tmp_remove(&dir);
}

/* Which of two would count is a guess. Two names of one column are no error: tables of others have
 * both. */
TEST(a_column_twice) {
    static const char *const head[] = {"op,m,n,M,k", "op\tm\tn\tn\tk",
                                       "op,m,n,k,latency_s,latency_ms"};
    tmp_dir dir = tmp_make();
    for (size_t k = 0; k < sizeof head / sizeof *head; k++) {
        cd_dict names = {0};
        cd_op_reader *r = NULL;
        cdmpp_err err = {0};
        const char *path = tmp_put(&dir, "t.csv", head[k], strlen(head[k]));
        assert_status(cd_llm_op_reader_open(path, &names, &r, &err),
                      k < 2 ? CDMPP_ESCHEMA : CDMPP_OK);
        assert_true(k == 2 ||
                    strstr(err.msg, k ? "column n is there twice" : "column M is there twice"));
        cd_op_reader_close(r);
        cd_dict_free(&names);
    }
    tmp_remove(&dir);
}

/* Names that nobody reads are fine, unless they are very near one that is missing. */
TEST(odd_columns) {
    static const struct {
        const char *head, *name, *near;
    } v[] = {{"op,dtpye,m,n,k", "dtpye", "dtype"},
             {"op,m,n,k,latncy_s", "latncy_s", "latency_s"},
             {"op,m,n,k,latency_us", "latency_us", "latency_s"},
             {"op,m,n,k,num_sites,moe_kernel,notes,x", NULL, NULL},
             {"op,dtype,dtypes,m,n,k", NULL, NULL},
             {"op,isl,batchsize,num_heads", "batchsize", "batch_size"}};
    tmp_dir dir = tmp_make();
    for (size_t k = 0; k < sizeof v / sizeof *v; k++) {
        cd_dict names = {0};
        cd_op_reader *r = NULL;
        cdmpp_err err = {0};
        char want[200];
        assert_ok(cd_llm_op_reader_open(tmp_put(&dir, "t.csv", v[k].head, strlen(v[k].head)),
                                        &names, &r, &err));
        assert_true(cd_op_reader_odd(r, 0, &err) == (v[k].name != NULL));
        assert_false(cd_op_reader_odd(r, 1, &err));
        if (v[k].name) {
            (void)snprintf(
                want, sizeof want, "column '%s' is not read: did you mean '%s'?%s", v[k].name,
                v[k].near,
                strcmp(v[k].near, "latency_s")
                    ? ""
                    : " Times are read from 'latency_s' (seconds) or 'latency_ms' (milliseconds)");
            assert_true(cd_op_reader_odd(r, 0, &err));
            assert_string_equal(err.msg, want);
            assert_int_equal(err.line, 1);
            assert_non_null(strstr(err.path, "t.csv"));
        }
        cd_op_reader_close(r);
        cd_dict_free(&names);
    }
    tmp_remove(&dir);
}

TESTS(NULL, NULL, odd_columns, a_column_twice, our_columns, columns_of_others, experts, bad_lines,
      hdf5, named_values, names_of_files, manual, refused)
