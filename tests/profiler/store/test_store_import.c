/* store imports: tables of operators, curves, Nsight's export, traces of PyTorch, and what is
 * broken in them. */
#include "profiler/store/store.h"
#include "check.h"
#include "fault.h"
#include "tmp.h"

#include <sqlite3.h>

static cdmpp_err err;

typedef struct fixture {
    tmp_dir d;
    cd_store *s;
    cd_store_tally t;
    cd_buf csv;
    int bad;
    char last_bad[256];
} fixture;

static void on_bad(void *ctx, const cdmpp_err *e) {
    fixture *f = ctx;
    f->bad++;
    cdmpp_err_format(e, f->last_bad, sizeof f->last_bad);
}

static cdmpp_status put(void *ctx, const cd_store_hit *h, cdmpp_err *e) {
    (void)e;
    cd_store_put_csv(ctx, h);
    return CDMPP_OK;
}

static cdmpp_status read_file(fixture *f, const char *path) {
    const cd_store_import how = {.bad = on_bad, .ctx = f};
    const cd_store_filter all = {0};
    cdmpp_status st = cd_store_import_path(f->s, path, &how, &f->t, &err);
    if (!st) st = cd_store_query(f->s, &all, put, &f->csv, &err);
    return st;
}

static fixture *begin(void) {
    static fixture f;
    f = (fixture){.d = tmp_make()};
    assert_ok(cd_store_open(tmp_path(&f.d, "s.db"), true, &f.s, &err));
    return &f;
}

static void end(fixture *f) {
    cd_store_close(f->s);
    cd_buf_free(&f->csv);
    tmp_remove(&f->d);
}

#define HAS(f, text)       assert_non_null(strstr((f)->csv.p, (text)))
#define PUT(f, name, text) tmp_put(&(f)->d, (name), (text), sizeof(text) - 1)

TEST(tables) {
    fixture *f = begin();
    assert_ok(read_file(f, PUT(f, "a.csv",
                               "OPName,Latency,Device,B,M,N,K,H\nbmm,0.5,Tesla T4,4,128,64,256,\n"
                               "softmax,0.25,Tesla T4,8192,,,,1024\nbmm,0.5,Tesla "
                               "T4,4,128,64,256,\nbmm,-1,Tesla T4,4,128,64,256,\n"
                               "fly,1,Tesla T4,1,1,1,1,\n")));
    assert_int_equal(f->t.added, 2);
    assert_int_equal(f->t.known, 1);
    assert_int_equal(f->bad, 2);
    assert_non_null(strstr(f->last_bad, "a.csv:6: OPName: unknown operator 'fly'"));
    HAS(f, ",Tesla "
           "T4,library,bmm,\"[\"\"bmm\"\",[4,128,64],[64,256],\"\"float32\"\"]\",\"[[4,128,64],[64,"
           "256]]\",float32,,");
    HAS(f, "[[8192,1024]]");
    HAS(f, "a.csv,2,");
    end(f);
}

TEST(curves) {
    fixture *f = begin();
    assert_ok(read_file(f, PUT(f, "c.tsv",
                               "set\thost\toperator\tdevice_id\tvaried\tshape\tpoints_n:ms\n"
                               "d\tdell01\tnn.conv2d\t0\t((4, 4), (0, 0))\t((-1, 3, 91, 81), (32, "
                               "3, 3, 3))\t1:0.5 2:0.75\n"
                               "d\tp2\ttanh\t1\t((2,), (0, 0))\t((-1, "
                               "7),)\t3:1e-2\nd\tp2\ttanh\t1\tx\t((-1, 7),)\t3:x\nshort\n")));
    assert_int_equal(f->t.added, 3);
    assert_int_equal(f->bad, 2);
    assert_non_null(strstr(f->last_bad, "c.tsv:5: "));
    HAS(f, ",dell01,tvm,nn.conv2d,\"[\"\"nn.conv2d\"\",[2,3,91,81],[32,3,3,3]]\"");
    HAS(f, ",p2:1,tvm,tanh,\"[\"\"tanh\"\",[3,7]]\",\"[[3,7]]\"");
    end(f);
}

/* As Nsight Systems documents its export. */
static const char *make_nsys(fixture *f, const char *more) {
    static const char sql[] =
        "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
        "INSERT INTO StringIds VALUES(1,'void gemm<float>(int)'),(2,'relu');"
        "CREATE TABLE TARGET_INFO_GPU(vmId INT, id INT, name TEXT, smCount INT);"
        "INSERT INTO TARGET_INFO_GPU VALUES(0,0,'NVIDIA A100',108);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT NOT NULL, end INT NOT NULL, deviceId "
        "INT NOT NULL, contextId INT, streamId INT,"
        " correlationId INT, globalPid INT, demangledName INT NOT NULL, shortName INT NOT NULL, "
        "gridX INT, gridY INT, gridZ INT,"
        " blockX INT, blockY INT, blockZ INT);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL "
        "VALUES(1000,3000,0,1,7,1,1,1,1,80,1,1,256,1,1),(4000,8000,0,1,7,2,1,1,1,80,1,1,256,1,1),"
        "(9000,9500,0,1,7,3,1,2,2,10,2,1,128,1,1),(9600,9600,0,1,7,4,1,2,2,10,2,1,128,1,1),(9700,"
        "9800,1,1,7,4,1,2,2,10,2,1,128,1,1);";
    const char *path = tmp_path(&f->d, "n.sqlite");
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, more, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    return path;
}

TEST(nsight) {
    fixture *f = begin();
    assert_ok(read_file(f, make_nsys(f, "")));
    assert_int_equal(f->t.lines, 5);
    assert_int_equal(f->t.added, 3);
    assert_int_equal(f->bad, 1); /* ends as it starts */
    HAS(f, ",NVIDIA A100,cuda,void gemm<float>(int),");
    HAS(f, "\"[[80,1,1],[256,1,1]]\"");
    HAS(f, ",2e-06,3e-06,3e-06,"); /* min, median, mean of 2 and 4 us */
    HAS(f, ",summary,");
    HAS(f, ",cuda:1,cuda,relu,"); /* not among the GPUs of the export */
    end(f);
    f = begin();
    assert_status(read_file(f, make_nsys(f, "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")),
                  CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "without kernels"));
    end(f);
}

TEST(traces) {
    fixture *f = begin();
    assert_ok(read_file(
        f, PUT(f, "t.json",
               "{\"schemaVersion\": 1, \"traceEvents\": [\n"
               "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 1, \"args\": {\"name\": "
               "\"python ]}\"}},\n"
               "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 1, \"tid\": "
               "1, \"ts\": 100, \"dur\": 50.5,\n"
               "  \"args\": {\"External id\": 2, \"Input Dims\": [[8, 16], [16, 32], []], \"Input "
               "type\": [\"\", \"float\"]}},\n"
               "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"dur\": \"slow\", "
               "\"args\": {}},\n"
               "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"ts\": "
               "101, \"dur\": 4},\n"
               "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"sgemm_32\", \"ts\": 120, \"dur\": "
               "10, \"args\": {\"device\": 0, \"grid\": [4, 1, 1], \"block\": [64, 1, 1]}},\n"
               "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"sgemm_32\", \"ts\": 140, \"dur\": "
               "30, \"args\": {\"device\": 0, \"grid\": [4, 1, 1], \"block\": [64, 1, 1]}},\n"
               "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"other\", \"ts\": 140, \"dur\": 0, "
               "\"args\": {\"device\": 3}},\n"
               "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"other\", \"ts\": 140, \"dur\": 2, "
               "\"args\": {\"device\": 3}}],\n"
               "\"deviceProperties\": [{\"id\": 0, \"name\": \"Tesla T4\", \"numSms\": 40}]}\n")));
    assert_int_equal(f->t.lines, 6);
    assert_int_equal(f->t.added, 3);
    assert_int_equal(f->t.empty, 1);
    assert_int_equal(f->bad, 1);
    assert_non_null(strstr(f->last_bad, "t.json:5: "));
    HAS(f, ",cpu,pytorch,aten::mm,\"[\"\"aten::mm\"\",[8,16],[16,32],[],\"\"float32\"\"]\",");
    HAS(f, ",inclusive,");
    HAS(f, ",Tesla T4,pytorch,sgemm_32,");
    HAS(f, ",cuda:3,pytorch,other,");
    HAS(f, "t.json,3,"); /* where the event begins */
    end(f);
}

/* More different launches than the table of groups begins with, in turns: each is one group with
 * all its times, wherever the table grew between. */
TEST(many_launches) {
    enum { KERNELS = 700, ROUNDS = 3 };
    fixture *f = begin();
    cd_buf b = {0};
    cd_buf_puts(&b, "{\"schemaVersion\": 1, \"traceEvents\": [\n");
    for (int k = 0; k < KERNELS * ROUNDS; k++)
        cd_buf_putf(
            &b,
            "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k%d\", \"ts\": %d, \"dur\": %d, "
            "\"args\": {\"device\": 0, \"grid\": [%d, 1, 1], \"block\": [64, 1, 1]}}%s\n",
            k % KERNELS / 7, 9000 * k, 1000 + k / KERNELS, k % KERNELS % 7 + 1,
            k + 1 < KERNELS * ROUNDS ? "," : "]}");
    assert_ok(read_file(f, tmp_put(&f->d, "many.json", b.p, b.n)));
    assert_int_equal(f->t.added, KERNELS);
    assert_int_equal(f->t.known + (size_t)f->bad, 0);
    size_t n = 0;
    /* min, median of 1000, 1001, 1002 us */
    for (const char *at = f->csv.p; (at = strstr(at, ",0.001,0.001001,")); at++) n++;
    assert_int_equal(n, KERNELS);
    n = 0;
    for (const char *at = f->csv.p; (at = strstr(at, ",3,summary,")); at++) n++;
    assert_int_equal(n, KERNELS);
    cd_buf_free(&b);
    end(f);
}

/* A trace cut at any byte: no crash, and what was whole before the cut is there. */
TEST(cut_traces) {
    static const char all[] = "[{\"ph\":\"X\",\"name\":\"aten::add\",\"ts\":1,\"dur\":2,\"pid\":"
                              "\"CPU functions\",\"args\":{}},\n"
                              " {\"ph\":\"X\",\"name\":\"aten::\\\"m\",\"ts\":1,\"dur\":2,\"pid\":"
                              "\"CPU functions\",\"args\":{\"a\":\"}\"}}]\n";
    const size_t first = (size_t)(strstr(all, "}},") - all) + 2; /* end of the first event */
    fixture *f = begin();
    for (size_t n = 1; n < sizeof all - 3; n++) {
        f->t = (cd_store_tally){0};
        f->bad = 0;
        cd_buf_clear(&f->csv);
        assert_ok(read_file(f, tmp_put(&f->d, "cut.json", all, n)));
        assert_int_equal(f->bad, 1);
        assert_int_equal(f->t.added + f->t.known, n >= first);
    }
    end(f);
}

TEST(unknown_forms) {
    fixture *f = begin();
    assert_status(read_file(f, PUT(f, "x.json", "{\"a\": 1}\n")), CDMPP_ESCHEMA);
    assert_status(read_file(f, PUT(f, "x.csv", "a,b,c\n1,2,3\n")), CDMPP_ESCHEMA);
    assert_status(read_file(f, PUT(f, "empty.json", "")), CDMPP_ESCHEMA);
    assert_status(read_file(f, tmp_path(&f->d, "none.json")), CDMPP_EIO);
    end(f);
}

/* Tables of profilers: launches of one kernel and grid are a row, rows of a summary are no
 * measurements, sizes tell CUTLASS's problems apart. */
TEST(tables_of_profilers) {
    fixture *f = begin();
    assert_ok(read_file(
        f, PUT(f, "n.csv",
               "Start (ns),Duration "
               "(ns),GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Device,Strm,Name\n1,2000,8,1,1,64,1,1,T4 "
               "(0),7,k\n9000,4000,8,1,1,64,1,1,T4 (0),7,k\n"
               "20000,1,,,,,,,T4 (0),7,[CUDA memset]\n30000,x,8,1,1,64,1,1,T4 (0),7,k\n")));
    assert_int_equal(f->t.lines, 3);
    assert_int_equal(f->t.added, 1);
    assert_int_equal(f->bad, 1);
    HAS(f, ",T4,cuda,k,\"[\"\"k\"\",[8,1,1],[64,1,1]]\"");
    HAS(f, ",2e-06,3e-06,3e-06,");
    assert_ok(read_file(
        f, PUT(f, "s.csv",
               "Time (%),Total Time (ns),Instances,Avg (ns),Name\n60.0,3000,2,1500.0,k\n")));
    assert_int_equal(f->t.added, 1);
    assert_non_null(strstr(f->last_bad, "s.csv:2: a row of a summary is no measurement"));
    assert_ok(
        read_file(f, PUT(f, "c.csv",
                         "Problem,OperationKind,Operation,Disposition,Status,m,n,k,A,B,op_class,"
                         "Runtime\n1,gemm,g,passed,success,64,32,16,f16:row,f16:row,tensorop,0.5\n"
                         "1,gemm,g,passed,success,64,32,8,f16:row,f16:row,tensorop,0.25\n")));
    assert_int_equal(f->t.added, 3);
    HAS(f, "[\"\"g\"\",[1,64,16],[16,32],\"\"f16\"\"]");
    end(f);
}

#define AUTOTVM(costs, error)                                                                      \
    "{\"input\": [\"llvm -model=e5\", \"dense.x86\", [[\"TENSOR\", [1, 512], \"float32\"], "       \
    "[\"TENSOR\", [10, 512], \"float32\"], null, 2], {}], "                                        \
    "\"config\": {\"index\": 30, \"entity\": [[\"tile\", \"sp\", [-1, 8]]]}, \"result\": [[" costs \
    "], " error ", 0.5, 1650000000.25], \"version\": 0.2}\n"

TEST(opbench) {
    fixture *f = begin();
    assert_ok(read_file(f, PUT(f, "r18.csv",
                               "op_name,op_time,op_proportion\nnn.conv2d,2000,66\nnn.relu,1000,"
                               "33\nnn.add,slow,1\n,5,0\nnn.add\n")));
    assert_int_equal(f->t.lines, 5);
    assert_int_equal(f->t.added, 2);
    assert_int_equal(f->bad, 3);
    assert_non_null(strstr(f->last_bad, "r18.csv:6: expected 3 fields, found 1"));
    HAS(f, ",tvm,nn.conv2d,\"[\"\"nn.conv2d\"\",\"\"");
    HAS(f, "/r18\"\"]\",[],,,,0,2e-06,2e-06,2e-06,0,0,1,summary,");
    assert_ok(read_file(f, PUT(f, "i.csv",
                               "a_name,forward_fw_inputsize,forward_fw_mean_time,forward_fw_stdvar_"
                               "time\nnn.relu-3,602112,4000,400\n")));
    HAS(f, ",4e-06,4e-06,4e-06,4e-07,0.1");
    assert_ok(read_file(f, PUT(f, "0.csv",
                               "task_name,trial,costs,all_cost\n\"[\"\"ab\"\", [4, "
                               "8]]\",1,0.5,2\nconv2d,2,1e10,3\n")));
    HAS(f, ",tvm,dag:ab,\"[\"\"ab\"\", [4, 8]]\",\"[[4,8]]\",,,,0,0.5,");
    assert_int_equal(f->t.added, 5); /* the failed one, too */
    assert_status(read_file(f, PUT(f, "n.csv", "op_name,seconds\na,1\n")), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "expected the columns op_name and op_time"));
    end(f);
}

TEST(autotvm) {
    fixture *f = begin();
    assert_ok(read_file(
        f, PUT(f, "a.json",
               AUTOTVM("2e-3, 1e-3", "0")
                   AUTOTVM("\"timeout\"",
                           "7") "{\"input\": [\"llvm\"], \"result\": [[1], "
                                "0]}\n" AUTOTVM("", "0") "{\"input\": [\"llvm\", \"t\", []], "
                                                         "\"result\": [[1e-3], 0]}\n")));
    assert_int_equal(f->t.added, 3);
    assert_int_equal(f->bad, 2);
    assert_non_null(strstr(f->last_bad, "a.json:4: expected seconds, found none"));
    HAS(f, ",e5,llvm "
           "-model=e5,dense.x86,\"[\"\"dense.x86\"\",[[\"\"TENSOR\"\",[1,512],\"\"float32\"\"],["
           "\"\"TENSOR\"\",[10,512],\"\"float32\"\"],null,2]]\",\"[[1,512],[10,512]]\",float32,,,0,"
           "0.001,0.0015,0.0015,");
    HAS(f, ",0.5,1650000000,");
    HAS(f, ",\"[\"\"t\"\",[]]\",[],,,,0,0.001,");
    end(f);
}

/* Any allocation may fail: an error, nothing lost. */
TEST(failing_at_every_allocation) {
    fixture *f = begin();
    char csv[256], json[256];
    snprintf(csv, sizeof csv, "%s", PUT(f, "a.csv", "op_name,op_time\nnn.relu,1000\n"));
    snprintf(json, sizeof json, "%s", PUT(f, "a.json", AUTOTVM("1e-3", "0")));
    FAULT_SWEEP(x, 1) {
        const cd_store_import how = {.form = CD_STORE_AUTO};
        cd_store_tally t = {0};
        cd_store *s = NULL;
        x.st = cd_store_open(":memory:", true, &s, &err);
        if (!x.st) x.st = cd_store_import_path(s, csv, &how, &t, &err);
        if (!x.st) x.st = cd_store_import_path(s, json, &how, &t, &err);
        cd_store_close(s);
        fault_off();
    }
    end(f);
}

TEST(folders) {
    fixture *f = begin();
    PUT(f, "a.csv", "OPName,Latency,Device,B,H\nrelu,0.5,T4,4,128\n");
    PUT(f, "b.json", "{\"a\": 1}\n");
    PUT(f, "c.txt", "nothing of ours");
    assert_ok(read_file(f, f->d.path));
    assert_int_equal(f->t.files, 1);
    assert_int_equal(f->t.added, 1);
    assert_int_equal(f->bad, 1); /* b.json */
    end(f);
}

TESTS(NULL, NULL, tables, curves, nsight, traces, many_launches, cut_traces, unknown_forms,
      tables_of_profilers, opbench, autotvm, failing_at_every_allocation, folders)
