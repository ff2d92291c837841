/* Odd tables and odd JSON of games: operators, packings, times by threads, queries and their
 * arrivals. */
#include "odd.h"
#include "predictor/partition/games/cotune.h"
#include "predictor/partition/games/game.h"
#include "predictor/partition/games/pack.h"
#include "predictor/partition/games/qos.h"
#include "tmp.h"

static tmp_dir dir;
static int set_up(void **state) { return (void)state, dir = tmp_make(), 0; }
static int tear_down(void **state) { return (void)state, tmp_remove(&dir), 0; }

static cdmpp_status game(const char *path, cdmpp_err *err) {
    cd_game_file g = {0};
    const cdmpp_status st = cd_game_read(path, &g, err);
    cd_arena_free(&g.arena);
    return st;
}

static cdmpp_status pack(const char *path, cdmpp_err *err) {
    cd_pack_table t = {0};
    const cdmpp_status st = cd_pack_read(path, &t, err);
    cd_arena_free(&t.arena);
    return st;
}

static cdmpp_status cotune(const char *path, cdmpp_err *err) {
    cd_cotune_table t = {0};
    const cdmpp_status st = cd_cotune_read(&path, 1, 0, NULL, &t, err);
    cd_arena_free(&t.arena);
    return st;
}

static cdmpp_status qos_of(const char *path, const char *device, cdmpp_err *err) {
    cd_qos_file f = {0};
    const cdmpp_status st = cd_qos_read(path, device, 4, &f, err);
    cd_qos_free(&f);
    return st;
}
static cdmpp_status qos(const char *path, cdmpp_err *err) { return qos_of(path, NULL, err); }
static cdmpp_status qos_of_v100(const char *path, cdmpp_err *err) {
    return qos_of(path, "v100", err);
}

static cdmpp_status arrivals(const char *path, cdmpp_err *err) {
    static cd_qos_kind kind[] = {{.name = "a", .seconds = 1}, {.name = "b", .seconds = 2}};
    cd_qos_file f = {.kind = kind, .n = 2};
    const cd_qos_arrival *a;
    uint32_t n;
    const cdmpp_status st = cd_qos_read_arrivals(path, &f, &a, &n, err);
    cd_arena_free(&f.arena);
    return st;
}

TEST(games) {
    const char *path = tmp_path(&dir, "game");
    odd_all_of_file(path, "operator,cpu,gpu,transfer:gpu\na,1,2,0.5\nb,inf,3,\n", game);
    odd_all_of_file(
        path,
        "{\"devices\": [\"cpu\", \"gpu\"], \"operators\": [{\"name\": \"a\", \"seconds\": [1, "
        "null], \"transfer\": [0, 0.5]}, {\"name\": \"b\", \"seconds\": [2, 3]}]}",
        game);
}

TEST(packings) {
    odd_all_of_file(tmp_path(&dir, "pack"),
                    "operator,tasks,seconds,after\na,3,1,\nb,2,0.5, a\nc,1,1,a b\n", pack);
}

TEST(threads) {
    const char *path = tmp_path(&dir, "cotune.csv");
    odd_all_of_file(path, "operator,threads,seconds,bytes\na,1,8,16\na,2,4,16\nb,1,6,4\n", cotune);
    odd_all_of_file(path,
                    "factor,value,median_s,error_no\nbase,base,9,0\nthreads,1,8,0\nthreads,2,4,0\n",
                    cotune);
}

#define ESTIMATE(net, dev)                                                                         \
    "{\"network\":\"" net "\",\"device\":\"" dev                                                   \
    "\",\"batch\":8,\"latency_s\":1,\"low_s\":0.5,\"high_s\":2.5,\"level\":0.8}"
TEST(queries) {
    const char *path = tmp_path(&dir, "queries");
    odd_all_of_file(
        path, "query,seconds,low_s,high_s,deadline_s,bytes,weight\na,1,0.5,2,,7,3\nb,2,2,2,9,0,1\n",
        qos);
    odd_all_of_file(path, "query,seconds,deadline_s\na,1,9\n", qos);
    odd_all_of_file(
        path, " {\"result\":{\"estimates\":[" ESTIMATE("a", "v100") "," ESTIMATE("b", "v100") "]}}",
        qos);
    odd_all_of_file(
        path, "{\"result\":{\"estimates\":[" ESTIMATE("a", "k80") "," ESTIMATE("b", "v100") "]}}",
        qos_of_v100);
    odd_all_of_file(path, "at_s,query\n0.5,a\n0.5,b\n3,a\n", arrivals);
}

TESTS(set_up, tear_down, games, packings, threads, queries)
