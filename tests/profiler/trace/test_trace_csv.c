/* Tables of nvprof, nsys stats, ncu and cutlass_profiler: units, kinds, numbers of devices and
 * streams, and what is broken in them. */
#include "profiler/trace/trace.h"
#include "fault.h"
#include "traces.h"

static cdmpp_err err;

#define TRACE_HEADER                                                                               \
    "\"Start\",\"Duration\",\"Grid X\",\"Grid Y\",\"Grid Z\",\"Block X\",\"Block Y\",\"Block "     \
    "Z\",\"Size\",\"Device\",\"Stream\",\"Name\"\n"

TEST(nvprof_units_are_those_of_the_file) {
    traces *f = traces_begin();
    assert_ok(traces_text(
        f, "a.csv",
        "==1== Profiling result:\n" TRACE_HEADER "s,ms,,,,,,,KB,,,\n"
        "2.5,0.5,8,1,1,64,2,1,,\"Tesla T4 (1)\",\"13\",\"gemm(int, int) [77]\"\n"
        "3,2,,,,,,,4,\"Tesla T4 (0)\",7,[CUDA memcpy HtoD]\n4,1,,,,,,,1,T4,7,[CUDA memset]\n",
        &err));
    assert_string_equal(f->t[0]->form, "nvprof");
    assert_int_equal(f->t[0]->n, 3);
    const cd_trace_event *e = traces_event(f, 0);
    assert_int_equal(e->kind, CD_TRACE_KERNEL);
    assert_string_equal(traces_name(f, 0), "gemm(int, int)");
    assert_int_equal(e->link, 77);
    assert_true(e->start_ns == 2500000000);
    assert_close(e->time_s, 5e-4, 1e-12, 0);
    assert_string_equal(cd_trace_text(f->t[0], e->device), "Tesla T4");
    assert_int_equal(e->unit, 1);
    assert_int_equal(e->thread, 13);
    assert_string_equal(cd_trace_text(f->t[0], e->shape), "[[8,1,1],[64,2,1]]");
    assert_int_equal(traces_event(f, 1)->kind, CD_TRACE_COPY);
    assert_close(traces_event(f, 1)->bytes, 4096, 0, 0);
    assert_int_equal(traces_event(f, 1)->thread, 7);
    assert_int_equal(traces_event(f, 2)->kind, CD_TRACE_SET);
    traces_end(f);
}

TEST(a_table_without_units_is_left_out) {
    traces *f = traces_begin();
    assert_ok(traces_text(
        f, "a.csv", TRACE_HEADER "142,2,8,1,1,64,2,1,,T4,13,gemm\n143,2,8,1,1,64,2,1,,T4,13,gemm\n",
        &err));
    assert_int_equal(f->t[0]->n, 0);
    assert_int_equal(f->bad, 1);
    assert_non_null(strstr(f->last_bad, "a.csv:2: expected a line of units"));
    traces_end(f);
}

TEST(units_that_are_none) {
    traces *f = traces_begin();
    assert_ok(
        traces_text(f, "a.csv", "Start (ns),Duration (cycles),Device,Name\n0,2,T4,gemm\n", &err));
    assert_int_equal(f->t[0]->n, 0);
    assert_non_null(strstr(f->last_bad, "found 'ns' and 'cycles'"));
    traces_end(f);
}

TEST(bad_rows_are_counted) {
    traces *f = traces_begin();
    assert_ok(traces_text(f, "a.csv",
                          TRACE_HEADER "ms,us,,,,,,,KB,,,\n1,x,8,1,1,64,2,1,,T4,13,gemm\n-1,2,8,1,"
                                       "1,64,2,1,,T4,13,gemm\n1,2,8,1,1,64,2,1,,T4,13,\n"
                                       "1,0,8,1,1,64,2,1,,T4,13,gemm\n1,inf,8,1,1,64,2,1,,T4,13,"
                                       "gemm\n1,\"2,000\",8,1,1,64,2,1,,T4,13,gemm\n1,2\n\"1,2\n",
                          &err));
    assert_int_equal(f->t[0]->n, 1);
    assert_close(f->t[0]->event[0].time_s, 2e-3, 1e-12, 0);
    assert_int_equal(f->t[0]->empty, 1);
    assert_int_equal(f->bad, 6);
    assert_int_equal(f->t[0]->bad, 6);
    assert_non_null(strstr(f->last_bad, "a.csv:10: "));
    traces_end(f);
}

TEST(summaries_have_no_start) {
    traces *f = traces_begin();
    assert_ok(traces_text(f, "a.csv",
                          "\"Type\",\"Time(%)\",\"Time\",\"Calls\",\"Avg\",\"Min\",\"Max\","
                          "\"Name\"\n,%,ms,,us,us,ns,\n"
                          "\"GPU activities\",75.0,3.0,100,30.0,28.0,41000,gemm\n\"API "
                          "calls\",99.00,150.0,4,37500.0,2.0,149000.0,cudaMalloc\n",
                          &err));
    assert_string_equal(f->t[0]->form, "nvprof summary");
    assert_int_equal(f->t[0]->n, 1);
    const cd_trace_event *e = traces_event(f, 0);
    assert_true(e->start_ns == CD_TRACE_UNTIMED);
    assert_close(e->time_s, 3e-5, 1e-12, 0);
    const cd_trace_sum *s = &f->t[0]->sum[e->sum];
    assert_close(s->n, 100, 0, 0);
    assert_close(s->min_s, 28e-6, 1e-12, 0);
    assert_close(s->max_s, 41e-6, 1e-12, 0);
    assert_true(isnan(s->median_s));
    assert_ok(traces_text(f, "b.csv",
                          "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max "
                          "(ns),StdDev (ns),Name\n60.0,3000,2,1500.0,1450.0,1400,1600,1,gemm\n",
                          &err));
    assert_string_equal(f->t[1]->form, "nsys stats summary");
    assert_close(f->t[1]->sum[f->t[1]->event[0].sum].median_s, 1450e-9, 1e-12, 0);
    traces_end(f);
}

/* Text of the tool before and between tables; a table of calls of the host; megabytes of nsys are
 * 1e6. */
TEST(several_tables_in_one_file) {
    traces *f = traces_begin();
    assert_ok(traces_text(
        f, "a.csv",
        "\nNOTICE: Existing SQLite export found: a, b, \"c\nProcessing [x] with [y]...\n"
        "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Bytes "
        "(MB),Device,Ctx,Strm,Name\n"
        "100,50,9,1,2,3,4,5,6,,GPU,1,7,k\n200,20,10,,,,,,,4.194,GPU,1,7,[CUDA memcpy "
        "DtoH]\n\nProcessing, again, now\n"
        "Time (%),Total Time (ns),Num Calls,Avg "
        "(ns),Name\n81.2,131012864,1,131012864.0,cudaMalloc\n\n"
        "Start (ns),Duration (ns),Name,Result,CorrID\n100,50,cudaLaunchKernel,0,9\n",
        &err));
    assert_string_equal(f->t[0]->form, "nsys stats");
    assert_int_equal(f->t[0]->n, 2);
    assert_int_equal(f->bad, 0);
    assert_int_equal(traces_event(f, 0)->link, 9);
    assert_string_equal(cd_trace_text(f->t[0], traces_event(f, 0)->shape), "[[1,2,3],[4,5,6]]");
    assert_close(traces_event(f, 1)->bytes, 4194000, 1e-9, 0);
    traces_end(f);
}

TEST(ncu_in_both_forms) {
    traces *f = traces_begin();
    assert_ok(traces_text(
        f, "a.csv",
        "==PROF== Connected\n\"ID\",\"Kernel Name\",\"Stream\",\"Block Size\",\"Grid "
        "Size\",\"Device\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
        "\"0\",\"gemm(int, int)\",\"7\",\"(256, 1, 1)\",\"(80, 2, "
        "1)\",\"1\",\"Duration\",\"us\",\"1,204.5\"\n"
        "\"0\",\"gemm(int, int)\",\"7\",\"(256, 1, 1)\",\"(80, 2, "
        "1)\",\"1\",\"gpu__time_duration.sum\",\"us\",\"1,204.5\"\n"
        "\"1\",\"relu\",\"7\",\"(256, 1, 1)\",\"(80, 1, 1)\",\"1\",\"Duration\",\"cycle\",\"5\"\n"
        "\"2\",\"relu\",\"7\",\"(256, 1, 1)\",\"(80, 1, "
        "!)\",\"1\",\"Duration\",\"nsecond\",\"5\"\n",
        &err));
    assert_string_equal(f->t[0]->form, "ncu");
    assert_int_equal(f->t[0]->n, 2);
    assert_int_equal(f->bad, 1); /* cycles are no time */
    assert_close(traces_event(f, 0)->time_s, 1.2045e-3, 1e-12, 0);
    assert_string_equal(cd_trace_text(f->t[0], traces_event(f, 0)->shape), "[[80,2,1],[256,1,1]]");
    assert_string_equal(cd_trace_text(f->t[0], traces_event(f, 0)->device), "cuda:1");
    assert_close(traces_event(f, 1)->time_s, 5e-9, 1e-12, 0);
    assert_string_equal(cd_trace_text(f->t[0], traces_event(f, 1)->shape), ""); /* no grid */
    assert_ok(traces_text(
        f, "b.csv",
        "\"ID\",\"Kernel "
        "Name\",\"gpu__time_duration.sum\"\n\"\",\"\",\"msecond\"\n\"0\",\"gemm\",\"1.5\"\n",
        &err));
    assert_close(f->t[1]->event[0].time_s, 1.5e-3, 1e-12, 0);
    traces_end(f);
}

#define GEMM_HEADER                                                                                \
    "Problem,Provider,OperationKind,Operation,Disposition,Status,m,n,k,A,B,C,batch_count,op_"      \
    "class,accum,Bytes,Flops,Runtime,GB/s,GFLOPs\n"
#define GEMM(op, verdict, status, a, class, ms, rate)                                              \
    "1,CUTLASS,gemm," op "," verdict "," status ",1024,512,256," a ":column," a ":row," a          \
    ":column,1," class ",f32,1,268435456," ms ",1," rate "\n"

TEST(cutlass_rows_are_operators) {
    traces *f = traces_begin();
    assert_ok(traces_text(
        f, "c.csv",
        "CSV Results:\n\n" GEMM_HEADER GEMM("one", "passed", "success", "f32", "simt", "0.05",
                                            "5368.7")
            GEMM("two", "passed", "success", "f32", "tensorop", "0.05", "5368.7")
                GEMM("three", "not_verified", "success", "bf16", "tensorop", "0.05", "5368.7")
                    GEMM("four", "incorrect", "success", "f16", "simt", "0.05", "5368.7")
                        GEMM("five", "not_run", "invalid_problem", "f16", "simt", "0", "0")
                            GEMM("six", "passed", "success", "f16", "simt", "50", "5368.7"),
        &err));
    assert_string_equal(f->t[0]->form, "cutlass");
    assert_int_equal(f->t[0]->n, 3);
    assert_int_equal(f->bad, 3); /* wrong, not run, a runtime that is not in milliseconds */
    assert_non_null(strstr(f->last_bad, "c.csv:9: expected a runtime in milliseconds"));
    assert_int_equal(f->t[0]->n_question, 2); /* float32 on tensor cores is TF32 */
    const cd_library_op_record *q = &f->t[0]->question[traces_event(f, 0)->question];
    assert_true(q->kind == CD_LIBRARY_OP_LINEAR && q->m == 1024 && q->n == 512 && q->k == 256 &&
                q->dtype == CD_LIBRARY_OP_DTYPE_F32);
    assert_int_equal(traces_event(f, 1)->question, CD_TRACE_NONE);
    assert_int_equal(f->t[0]->question[traces_event(f, 2)->question].dtype,
                     CD_LIBRARY_OP_DTYPE_BF16);
    assert_string_equal(cd_trace_text(f->t[0], traces_event(f, 0)->shape),
                        "[[1,1024,256],[256,512]]");
    traces_end(f);
}

#define CONV_HEADER                                                                                \
    "Problem,Provider,OperationKind,Operation,Disposition,Status,conv_kind,n,h,w,c,k,r,s,pad_h,"   \
    "pad_w,stride_h,stride_w,dilation_h,dilation_w,groups,Activation,Filter,op_class,Runtime\n"
#define CONV(kind, h, dilation, groups)                                                            \
    "1,CUTLASS,conv2d,x,passed,success," kind ",8," h ",56,64,128,3,3,1,1,2,2," dilation           \
    ",1," groups ",f16:nhwc,f16:nhwc,tensorop,0.1\n"

TEST(cutlass_convolutions) {
    traces *f = traces_begin();
    assert_ok(traces_text(f, "c.csv",
                          CONV_HEADER CONV("fprop", "56", "1", "1") CONV("dgrad", "56", "1", "1")
                              CONV("fprop", "28", "1", "1") CONV("fprop", "56", "2", "1")
                                  CONV("fprop", "56", "1", "4"),
                          &err));
    assert_int_equal(f->t[0]->n, 5);
    assert_int_equal(f->t[0]->n_question, 1);
    const cd_library_op_record *q = f->t[0]->question;
    assert_true(q->kind == CD_LIBRARY_OP_CONV && q->m == 8 * 28 * 28 && q->n == 128 &&
                q->k == 64 * 9 && q->cin == 64 && q->stride == 2 && q->pad == 1 && q->size == 56);
    traces_end(f);
}

TEST(what_is_no_trace) {
    traces *f = traces_begin();
    assert_status(traces_text(f, "a.csv", "a,b,c\n1,2,3\n", &err), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "nsys stats"));
    assert_status(traces_text(f, "empty", "", &err), CDMPP_ESCHEMA);
    assert_status(traces_read(f, tmp_put(&f->d, "x.nsys-rep", "NSYS\0\1\2", 7), &err),
                  CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "nsys export --type sqlite"));
    assert_status(traces_read(f, tmp_path(&f->d, "none"), &err), CDMPP_EIO);
    /* Nsight Compute without the metric */
    assert_status(
        traces_text(
            f, "n.csv",
            "\"ID\",\"Kernel "
            "Name\",\"sm__cycles_elapsed.avg\"\n\"\",\"\",\"cycle\"\n\"0\",\"gemm\",\"1.5\"\n",
            &err),
        CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "gpu__time_duration.sum"));
    traces_end(f);
}

#define NVPROF(row)    TRACE_HEADER "ms,us,,,,,,,KB,,,\n" row "\n"
#define SUMMARY_HEADER "\"Type\",\"Time(%)\",\"Time\",\"Calls\",\"Avg\",\"Min\",\"Max\",\"Name\"\n"
#define METRICS                                                                                    \
    "\"ID\",\"Kernel Name\",\"Stream\",\"Block Size\",\"Grid Size\",\"Device\",\"Metric "          \
    "Name\",\"Metric Unit\",\"Metric Value\"\n"
#define DIGITS_17 "12345678901234567"

/* A file with one row each, and what it becomes. */
TEST(rows) {
    static const struct {
        const char *text, *said;
    } t[] = {
        {NVPROF("1,2,8,1,1,64,2,1,,T4,x1,gemm []"),
         "kernel gemm [] on T4.0/0 at 1000000 2e-06 s [[8,1,1],[64,2,1]]; "},
        {NVPROF("1,2,8,1,1,64,2,1,,T4," DIGITS_17 "89,gemm [" DIGITS_17 "89]"),
         "kernel gemm [1234567890123456789] on T4.0/0 at 1000000 2e-06 s [[8,1,1],[64,2,1]]; "},
        {NVPROF("1,2,8,1,1,64,2,1,,T4,13, [5]"),
         "kernel [5] on T4.0/13 at 1000000 2e-06 s [[8,1,1],[64,2,1]]; "},
        {NVPROF("1,2,8,1,1,64,2,1,,T4,13,g(5]"),
         "kernel g(5] on T4.0/13 at 1000000 2e-06 s [[8,1,1],[64,2,1]]; "},
        {NVPROF("1,2,8,1,1,64,2,1,,T4,13,gg[5]"),
         "kernel gg[5] on T4.0/13 at 1000000 2e-06 s [[8,1,1],[64,2,1]]; "},
        {NVPROF("1,2,8,1,1,64,2,1,,(1),13,[7]"),
         "kernel [7] on (1).0/13 at 1000000 2e-06 s [[8,1,1],[64,2,1]]; "},
        {NVPROF("1,2,8,,1,64,2,1,,3,13,gemm"), "kernel gemm on cuda:3.3/13 at 1000000 2e-06 s; "},
        {NVPROF("1,2,8,x,1,64,2,1,,3,13,gemm"),
         "bad: a.csv:3: grid y: expected a number, found 'x' [EPARSE]"},
        {NVPROF("1,2,8,1,1,64,2,1,5,3000000000,13,[CUDA Unified Memory Memset]"),
         "set [CUDA Unified Memory Memset] on 3000000000.0/13 at 1000000 2e-06 s 5120 B; "},
        {NVPROF("1,2,,,,,,,x,T4,13,[CUDA memcpy DtoH]"),
         "bad: a.csv:3: size: expected a number, found 'x' [EPARSE]"},
        {TRACE_HEADER "ms,us,,,,,,,pages,,,\n1,2,,,,,,,5,T4,13,[CUDA memcpy DtoH]\n",
         "copy [CUDA memcpy DtoH] on T4.0/13 at 1000000 2e-06 s; "},
        {TRACE_HEADER "ms,us,,,,,,,GB,,,\n1,2,,,,,,,5,T4,13,[CUDA memset]\n",
         "set [CUDA memset] on T4.0/13 at 1000000 2e-06 s 5368709120 B; "},
        {NVPROF("1e300,2,8,1,1,64,2,1,,T4,13,gemm"),
         "bad: a.csv:3: expected a time below 1e9 s [ERANGE]"},
        {NVPROF("1,1e300,8,1,1,64,2,1,,T4,13,gemm"),
         "bad: a.csv:3: expected a time below 1e9 s [ERANGE]"},
        {"Start (ns),Duration (ns),CorrId,Device,Name\n1,2,x,T4,k\n",
         "bad: a.csv:2: corrid: expected a number, found 'x' [EPARSE]"},
        {"Start (ns),Duration (ns),CorrId,Device,Name\n1,2,1e18,T4,k\n",
         "kernel k on T4.0/0 at 1 2e-09 s; "},
        {"Start (ns),Duration (ns),CorrId,Device,Name\n1,2,,T4,\xff\xfe\n",
         "bad: a.csv:2: expected names in UTF-8 [ESCHEMA]"},
        {SUMMARY_HEADER ",%,ms,,us,us,ns,\nGPU activities,75.0,3.0,100,30.0,28.0,x,\n",
         "bad: a.csv:3: expected a name [ESCHEMA]"},
        {SUMMARY_HEADER ",%,ms,,us,us,ns,\nGPU activities,75.0,x,100,30.0,28.0,x,gemm\n",
         "bad: a.csv:3: time: expected a number, found 'x' [EPARSE]"},
        {SUMMARY_HEADER ",%,ms,,us,us,ns,\nGPU activities,75.0,3.0,0,30.0,28.0,x,gemm\n",
         "bad: a.csv:3: calls: expected at least 1, found '0' [ERANGE]"},
        {SUMMARY_HEADER ",%,cycles,,us,us,ns,\nGPU activities,75.0,3.0,1,30.0,28.0,x,gemm\n",
         "bad: a.csv:2: expected a line of units with one of time behind the names of the columns: "
         "the table is left out [ESCHEMA]"},
        {SUMMARY_HEADER ",%,ms,,us,us,ns,\nGPU activities,75.0,0,1,30.0,28.0,x,gemm\n",
         "1 empty; "},
        {SUMMARY_HEADER ",%,ms,,us,pages,ns,\n,75.0,3,1,30.0,28.0,,[CUDA memcpy HtoD]\n",
         "copy [CUDA memcpy HtoD] on .0/0 0.003 s; "},
        {METRICS "0,,7,\"(1, 1, 1)\",\"(1, 1, 1)\",1,Duration,us,1\n",
         "bad: a.csv:2: expected a name [ESCHEMA]"},
        {METRICS "0,gemm,7,\"(1, x, 1)\",\"(1, 1, 1)\",1,Duration,us,0\n", "1 empty; "},
        {METRICS
         "0,gemm,7,\"(1, x, 1)\",\"(1, 1, 1)\",1,Duration,us,3\n0,gemm,7,,,1,dram__bytes.sum,B,3\n",
         "kernel gemm on cuda:1.1/7 3e-06 s; "},
        {METRICS "0,gemm,7,\"(1, x, 1)\",\"(1, 1, 1)\",1,Duration," DIGITS_17 DIGITS_17 ",3\n",
         "bad: a.csv:2: expected a unit of time [ESCHEMA]"},
        {METRICS DIGITS_17 DIGITS_17 ",gemm,7,,,1,Duration,us,x\n",
         "bad: a.csv:2: metric value: expected a number, found 'x' [EPARSE]"},
        {GEMM_HEADER GEMM("", "passed", "success", "f32", "simt", "0.05", "5368.7"),
         "bad: a.csv:2: expected a name [ESCHEMA]"},
        {GEMM_HEADER GEMM("x", "passed", "", "f32", "simt", "0.05", "0"),
         "kernel x on .0/0 5e-05 s [[1,1024,256],[256,512]]; "},
        {GEMM_HEADER GEMM("x", "passed", "invalid", "f32", "simt", "0.05", "0"),
         "bad: a.csv:2: x did not run: invalid [EUNSUPPORTED]"},
        {GEMM_HEADER GEMM("x", "failed", "success", "f32", "simt", "0.05", "0"),
         "bad: a.csv:2: x: its results are wrong [EUNSUPPORTED]"},
        {GEMM_HEADER GEMM("x", "passed", "success", "f32", "simt", "x", "0"),
         "bad: a.csv:2: runtime: expected a number, found 'x' [EPARSE]"},
        {GEMM_HEADER GEMM("x", "passed", "success", "f32", "simt", "0", "0"),
         "bad: a.csv:2: runtime: expected a time above 0 [ERANGE]"},
        {"OperationKind,Operation,Disposition,Runtime\nrank_k,x,passed,1\n",
         "kernel x on .0/0 0.001 s; "},
        {"OperationKind,Operation,Disposition,m,n,k,batch_count,Runtime\ngemm,x,passed,1,2,3,x,1\n",
         "kernel x on .0/0 0.001 s [[1,1,3],[3,2]]; "},
        {"Start (ns),Duration (ns)\n1,2\n",
         "a.csv: found no table of nvprof --csv, nsys stats --format csv (cuda_gpu_trace, "
         "cuda_gpu_kern_sum), ncu --csv (with the metric gpu__time_duration.sum) or "
         "cutlass_profiler [ESCHEMA]"},
        {"Time (ns),Avg (ns),Total Time (ns)\n1,2,3\n",
         "a.csv: found no table of nvprof --csv, nsys stats --format csv (cuda_gpu_trace, "
         "cuda_gpu_kern_sum), ncu --csv (with the metric gpu__time_duration.sum) or "
         "cutlass_profiler [ESCHEMA]"},
        {"Avg (ns),Min (ns),Max (ns)\n1,2,3\n",
         "a.csv: found no table of nvprof --csv, nsys stats --format csv (cuda_gpu_trace, "
         "cuda_gpu_kern_sum), ncu --csv (with the metric gpu__time_duration.sum) or "
         "cutlass_profiler [ESCHEMA]"},
        {"ID,Name\n1,2\n", "a.csv: found no table of nvprof --csv, nsys stats --format csv "
                           "(cuda_gpu_trace, cuda_gpu_kern_sum), ncu --csv (with the metric "
                           "gpu__time_duration.sum) or cutlass_profiler [ESCHEMA]"},
        {"ID,Kernel Name,Metric Name\n1,2,3\n",
         "a.csv: found no table of nvprof --csv, nsys stats --format csv (cuda_gpu_trace, "
         "cuda_gpu_kern_sum), ncu --csv (with the metric gpu__time_duration.sum) or "
         "cutlass_profiler [ESCHEMA]"},
        {"Start (ns),Duration (ns),Name\n1,2,k\n",
         "a.csv: found no table of nvprof --csv, nsys stats --format csv (cuda_gpu_trace, "
         "cuda_gpu_kern_sum), ncu --csv (with the metric gpu__time_duration.sum) or "
         "cutlass_profiler [ESCHEMA]"},
        {"Start (ns),Duration (ns),Device,Name\n 1\t, 2 ,T4,k\n1,2,T4\n1,2,T4,k,5\n",
         "kernel k on T4.0/0 at 1 2e-09 s; kernel k on T4.0/0 at 1 2e-09 s; bad: a.csv:3: expected "
         "a name [ESCHEMA]"},
        {"Start (" DIGITS_17 DIGITS_17 "),Duration (ns),Device,Name\n1,2,T4,k\n",
         "bad: a.csv:2: expected units of time for start and duration, found "
         "'1234567890123456712345678901234567' and 'ns' [ESCHEMA]"},
        {"\xef\xbb\xbfStart (ns),Duration (ns),Device,Name\n1,2,T4,k\n\"open\n",
         "kernel k on T4.0/0 at 1 2e-09 s; bad: a.csv:3: a quoted field has no end in its line "
         "[EPARSE]"},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        const char *said = traces_said("a.csv", t[k].text);
        if (strcmp(said, t[k].said)) print_error("row %zu\n", k);
        assert_string_equal(said, t[k].said);
    }
}

TEST(memory) {
    traces *d = traces_begin();
    static const char text[] = TRACE_HEADER "ms,us,,,,,,,KB,,,\n1,2,8,1,1,64,2,1,,T4,13,gemm\n";
    const char *path = tmp_put(&d->d, "a.csv", text, sizeof text - 1);
    FAULT_SWEEP(f, 5) {
        const cd_trace_reading how = {0};
        cd_trace *t = NULL;
        f.st = cd_trace_read(path, &how, &t, &f.err);
        if (!f.st) f.st = cd_trace_link(t, &f.err);
        cd_trace_free(t);
    }
    traces_end(d);
}

TESTS(NULL, NULL, nvprof_units_are_those_of_the_file, a_table_without_units_is_left_out, rows,
      units_that_are_none, bad_rows_are_counted, summaries_have_no_start,
      several_tables_in_one_file, ncu_in_both_forms, cutlass_rows_are_operators,
      cutlass_convolutions, what_is_no_trace, memory)
