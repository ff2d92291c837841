/* Parts of a data set by record, task, network and device: sizes, names, digests. */
#include "dataset/split/split.h"
#include "check.h"
#include "split_refused.h"

#include <string.h>

/* 6 tasks x 2 devices x 10 lines; network A: tasks 0 1 2, B: 2 3, (C,[1]): 4; task 5 in none. */
enum { T = 6, D = 2, L = 10, N = T * D * L };
typedef struct {
    cd_dataset d;
    double y[N], mean[N], std[N];
    uint32_t rep[N], task[N], dev[N], src[N], net[6], ntask[6];
    uint8_t error[N], keep[N];
    uint64_t line[N];
    int64_t ptr[N + 1];
} fix;

static char *tasks[] = {"t0", "t1", "t2", "t3", "t4", "t5"}, *devs[] = {"a", "b"},
            *srcs[] = {"x/f.json"}, *nets[] = {"A", "B", "(C,[1])"};

/* `flip`: the same programs in reverse order, from another folder. */
static void build(fix *f, int flip) {
    static char *other[] = {"/y/z/f.json"};
    memset(f, 0, sizeof *f);
    for (int i = 0; i < N; i++) {
        const int k = flip ? N - 1 - i : i;
        f->task[i] = (uint32_t)(k % T);
        f->dev[i] = (uint32_t)(k / T % D);
        f->line[i] = (uint64_t)(k + 1);
        f->y[i] = f->mean[i] = 1e-3 * (k + 1);
        f->rep[i] = 3;
        f->ptr[i + 1] = i + 1;
        f->keep[i] = 1;
    }
    static const uint32_t net[] = {0, 0, 0, 1, 1, 2}, nt[] = {0, 1, 2, 2, 3, 4};
    memcpy(f->net, net, sizeof net);
    memcpy(f->ntask, nt, sizeof nt);
    f->d = (cd_dataset){.n = N,
                        .row_ptr = f->ptr,
                        .latency_s = f->y,
                        .latency_mean_s = f->mean,
                        .latency_std_s = f->std,
                        .repeats = f->rep,
                        .error = f->error,
                        .task = f->task,
                        .device = f->dev,
                        .source_file = f->src,
                        .source_line = f->line,
                        .n_task = T,
                        .n_device = D,
                        .n_source = 1,
                        .n_network = 3,
                        .task_name = tasks,
                        .device_name = devs,
                        .source_name = flip ? other : srcs,
                        .network_name = nets,
                        .n_net_task = 6,
                        .net_network = f->net,
                        .net_task = f->ntask};
}

static cd_split *split(fix *f, cd_split_spec spec) {
    cdmpp_err err = {0};
    cd_split *s = NULL;
    assert_ok(cd_split_make(&f->d, f->keep, &spec, &s, &err));
    assert_int_equal(s->n_program[0] + s->n_program[1] + s->n_program[2], N);
    return s;
}

/* The part of task t; fails when its programs are not all in one part. */
static int part_of(const fix *f, const cd_split *s, uint32_t t) {
    int part = -1;
    for (size_t i = 0; i < N; i++) {
        if (f->task[i] != t) continue;
        assert_true(part < 0 || part == s->part[i]);
        part = s->part[i];
    }
    return part;
}

TEST(by_record) {
    static fix f, g;
    build(&f, 0);
    build(&g, 1);
    cd_split *s =
        split(&f, (cd_split_spec){.kind = CD_SPLIT_RECORD, .seed = 1, .valid = 0.2, .test = 0.3});
    cd_split *r =
        split(&g, (cd_split_spec){.kind = CD_SPLIT_RECORD, .seed = 1, .valid = 0.2, .test = 0.3});
    cd_split *o =
        split(&f, (cd_split_spec){.kind = CD_SPLIT_RECORD, .seed = 2, .valid = 0.2, .test = 0.3});
    for (int i = 0; i < N; i++) assert_int_equal(s->part[i], r->part[N - 1 - i]);
    for (int p = 0; p < CD_SPLIT_N_PART; p++) assert_string_equal(s->hash[p], r->hash[p]);
    assert_string_equal(s->digest, r->digest);
    assert_string_not_equal(s->digest, o->digest);
    assert_in_range(s->n_program[CD_SPLIT_PART_TEST], 24, 48); /* 36 expected, sigma 5 */
    assert_in_range(s->n_program[CD_SPLIT_PART_VALID], 12, 36);
    cd_split_free(s);
    cd_split_free(r);
    cd_split_free(o);
}

TEST(by_task) {
    static fix f;
    build(&f, 0);
    cd_split *s =
        split(&f, (cd_split_spec){.kind = CD_SPLIT_TASK, .seed = 1, .valid = 0.2, .test = 0.34});
    int n[CD_SPLIT_N_PART] = {0};
    for (uint32_t t = 0; t < T; t++) n[part_of(&f, s, t)]++;
    assert_int_equal(n[CD_SPLIT_PART_TEST], 2);
    assert_int_equal(n[CD_SPLIT_PART_VALID], 1);
    assert_int_equal(s->n_task[CD_SPLIT_PART_TRAIN], 3);
    cd_split_free(s);
    const char *test[] = {"t4"}, *valid[] = {"t0", "t1"};
    s = split(&f, (cd_split_spec){
                      .kind = CD_SPLIT_TASK, .test_name = {1, test}, .valid_name = {2, valid}});
    assert_int_equal(part_of(&f, s, 4), CD_SPLIT_PART_TEST);
    assert_int_equal(part_of(&f, s, 1), CD_SPLIT_PART_VALID);
    assert_int_equal(s->n_task[CD_SPLIT_PART_TRAIN], 3);
    cd_split_free(s);
}

TEST(by_network) {
    static fix f;
    build(&f, 0);
    const char *test[] = {"B"}, *c[] = {"C"};
    cd_split *s =
        split(&f, (cd_split_spec){.kind = CD_SPLIT_NETWORK, .valid = 0.2, .test_name = {1, test}});
    assert_int_equal(part_of(&f, s, 2), CD_SPLIT_PART_TEST); /* shared with A: not trained on */
    assert_int_equal(part_of(&f, s, 3), CD_SPLIT_PART_TEST);
    assert_int_equal(s->n_task[CD_SPLIT_PART_TEST], 2);
    assert_int_equal(s->n_task[CD_SPLIT_PART_VALID], 1);
    assert_int_equal(s->n_shared, 1);
    cd_buf b = {0};
    cd_split_notes(&b, s);
    assert_string_equal(b.p,
                        "1 tasks of the held-out networks occur in others, too: not trained on\n");
    cd_buf_free(&b);
    cd_split_free(s);
    s = split(&f, (cd_split_spec){.kind = CD_SPLIT_NETWORK,
                                  .valid = 0.2,
                                  .test_name = {1, test},
                                  .valid_name = {1, c}});
    assert_int_equal(part_of(&f, s, 4), CD_SPLIT_PART_VALID);
    assert_int_equal(part_of(&f, s, 5), CD_SPLIT_PART_TRAIN);
    cd_split_free(s);
}

TEST(by_device) {
    static fix f;
    build(&f, 0);
    const char *test[] = {"b"};
    cd_split *s =
        split(&f, (cd_split_spec){.kind = CD_SPLIT_DEVICE, .valid = 0.2, .test_name = {1, test}});
    for (int i = 0; i < N; i++) assert_int_equal(s->part[i] == CD_SPLIT_PART_TEST, f.dev[i] == 1);
    assert_int_equal(s->n_task[CD_SPLIT_PART_VALID], 1);
    cd_split_free(s);
}

/* Who trains is named: the others are tested, or unused when the tested are named too. */
TEST(train_names) {
    static fix f;
    build(&f, 0);
    const char *a[] = {"A"}, *b[] = {"B"}, *dev[] = {"a"};
    cdmpp_err err = {0};
    cd_split *s =
        split(&f, (cd_split_spec){.kind = CD_SPLIT_DEVICE, .valid = 0.2, .train_name = {1, dev}});
    for (int i = 0; i < N; i++) assert_int_equal(s->part[i] == CD_SPLIT_PART_TEST, f.dev[i] == 1);
    cd_split_free(s);
    const cd_split_spec p = {
        .kind = CD_SPLIT_NETWORK, .valid = 0.2, .train_name = {1, a}, .test_name = {1, b}};
    assert_ok(cd_split_make(&f.d, f.keep, &p, &s, &err));
    assert_int_equal(part_of(&f, s, 2), CD_SPLIT_PART_TEST);
    assert_int_equal(part_of(&f, s, 3), CD_SPLIT_PART_TEST);
    assert_int_equal(part_of(&f, s, 4), CD_SPLIT_PART_NONE); /* of network C */
    assert_int_equal(part_of(&f, s, 5), CD_SPLIT_PART_NONE); /* of none */
    assert_int_equal(s->n_task[CD_SPLIT_PART_TRAIN] + s->n_task[CD_SPLIT_PART_VALID], 2);
    assert_int_equal(s->n_unused, 2 * N / T);
    cd_split_free(s);
    s = split(&f, (cd_split_spec){.kind = CD_SPLIT_TASK,
                                  .valid = 0.2,
                                  .train_name = {2, (const char *[]){"t0", "t1"}}});
    assert_int_equal(s->n_task[CD_SPLIT_PART_TEST], 4);
    assert_int_equal(s->n_task[CD_SPLIT_PART_VALID], 1);
    cd_split_free(s);
}

TEST(contradictions) {
    static fix f;
    build(&f, 0);
    const char *ab[] = {"A", "B"};
    const char *all[] = {"B", "A", "C"};
    const char *bs[] = {"C_bs1"};
    const char *typo[] = {"AA"};
    const char *dev[] = {"a", "b"};
    split_refused(
        &f.d, f.keep,
        (cd_split_spec){
            .kind = CD_SPLIT_NETWORK, .valid = 0.2, .test_name = {2, ab}, .valid_name = {1, ab}},
        CDMPP_ESCHEMA, "split.valid_names[0]", "'A' is in the test part already");
    split_refused(
        &f.d, f.keep,
        (cd_split_spec){
            .kind = CD_SPLIT_NETWORK, .valid = 0.2, .test_name = {2, ab}, .train_name = {1, ab}},
        CDMPP_ESCHEMA, "split.test_names[0]", "'A' is in the train part already");
    split_refused(&f.d, f.keep,
                  (cd_split_spec){.kind = CD_SPLIT_NETWORK, .valid = 0.2, .test_name = {1, typo}},
                  CDMPP_ESCHEMA, "split.test_names[0]", "did you mean 'A'?");
    split_refused(&f.d, f.keep,
                  (cd_split_spec){.kind = CD_SPLIT_RECORD, .valid = 0.2, .train_name = {1, ab}},
                  CDMPP_ESCHEMA, "split.train_names", "found record");
    split_refused(&f.d, f.keep,
                  (cd_split_spec){.kind = CD_SPLIT_DEVICE, .valid = 0.2, .test_name = {2, dev}},
                  CDMPP_ERANGE, "", "the train part");
    /* What is left after A, B and C is task 5, in no network: it validates. */
    split_refused(&f.d, f.keep,
                  (cd_split_spec){.kind = CD_SPLIT_NETWORK, .valid = 0.2, .test_name = {3, all}},
                  CDMPP_ERANGE, "", "the train part");
    /* B's tasks 2 and 3, had A both of them, too. */
    f.ntask[1] = 3;
    f.ntask[0] = 2;
    cd_split_free(split(&f, (cd_split_spec){.kind = CD_SPLIT_NETWORK,
                                            .valid = 0.2,
                                            .test_name = {1, ab + 1},
                                            .valid_name = {1, bs}}));
    for (int i = 0; i < N; i++) f.keep[i] = f.task[i] == 2 || f.task[i] == 3;
    split_refused(&f.d, f.keep,
                  (cd_split_spec){.kind = CD_SPLIT_NETWORK, .valid = 0.2, .test_name = {1, ab + 1}},
                  CDMPP_ERANGE, "", "2 tasks of other networks occur in the held-out ones, too");
}

TEST(refusals) {
    static fix f;
    build(&f, 0);
    cdmpp_err err = {0};
    cd_split *s = NULL;
    const char *test[] = {"A", "Z"};
    cd_split_spec spec = {.kind = CD_SPLIT_NETWORK, .valid = 0.2, .test_name = {2, test}};
    assert_status(cd_split_make(&f.d, f.keep, &spec, &s, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "split.test_names[1]");
    spec.kind = CD_SPLIT_RECORD;
    assert_status(cd_split_make(&f.d, f.keep, &spec, &s, &err), CDMPP_ESCHEMA);
    memset(f.keep, 0, sizeof f.keep);
    spec = (cd_split_spec){.kind = CD_SPLIT_TASK, .valid = 0.2, .test = 0.2};
    assert_status(cd_split_make(&f.d, f.keep, &spec, &s, &err), CDMPP_ERANGE);
}

TEST(filter_counts) {
    static fix f;
    build(&f, 0);
    cdmpp_err err = {0};
    cd_filter_count c;
    f.error[0] = 3; /* task 0 device a: 9 left */
    f.y[1] = 1e10;
    f.y[2] = NAN;
    f.ptr[4] = f.ptr[3];
    for (int i = 4; i < N; i++) f.ptr[i + 1] = i;
    f.std[4] = f.mean[4];
    f.std[5] = f.mean[5];
    f.rep[5] = 1; /* one repeat has no spread */
    assert_ok(cd_filter(&f.d, &(cd_filter_spec){.max_std_ratio = 0.5, .min_per_task = 10}, f.keep,
                        &c, &err));
    assert_int_equal(c.drop[CD_FILTER_DROP_ERROR], 1);
    assert_int_equal(c.drop[CD_FILTER_DROP_LATENCY], 2);
    assert_int_equal(c.drop[CD_FILTER_DROP_NO_ROWS], 1);
    assert_int_equal(c.drop[CD_FILTER_DROP_NOISY], 1);
    assert_int_equal(c.drop[CD_FILTER_DROP_RARE], 5 * 9);
    assert_int_equal(c.kept, N - 5 - 45);
    assert_int_equal(f.keep[5], 1);
}

/* A seed names the same split in every version: figures of an earlier one could not be compared
 * otherwise. */
TEST(seeds_stay) {
    static const struct {
        cd_split_kind kind;
        uint64_t seed;
        const char *digest; /* its beginning */
    } t[] = {{CD_SPLIT_RECORD, 0, "853c00309ad9"},  {CD_SPLIT_RECORD, 9, "1a918ba437eb"},
             {CD_SPLIT_TASK, 0, "a7215d34ac4c"},    {CD_SPLIT_TASK, 9, "a820f32b0a63"},
             {CD_SPLIT_NETWORK, 0, "1775c62081aa"}, {CD_SPLIT_NETWORK, 9, "a8e6e9e1edfa"},
             {CD_SPLIT_NETWORK, 2, "51035232e440"}};
    static fix f;
    build(&f, 0);
    for (int i = 0; i < N; i++) f.y[i] = 1;
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cd_split *s = split(
            &f, (cd_split_spec){.kind = t[k].kind, .seed = t[k].seed, .valid = 0.2, .test = 0.3});
        s->digest[12] = 0;
        assert_string_equal(s->digest, t[k].digest);
        cd_split_free(s);
    }
}

TESTS(NULL, NULL, seeds_stay, by_record, by_task, by_network, by_device, train_names,
      contradictions, refusals, filter_counts)
