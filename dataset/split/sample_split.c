/* By_device:... and by_net:... */
#include <string.h>

#include "dataset/split/split_internal.h"

/* One side: names, or everybody that the other side does not name. */
typedef struct {
    cd_texts name;
    bool given;
} side;

static cdmpp_status add(cd_arena *arena, side *to, const char *name, cdmpp_err *err) {
    const char **v = CD_NEWN(arena, const char *, to->name.n + 1);
    char *copy = cd_str_dup(arena, (cd_str){name, strlen(name)});
    if (!v || !copy) return CD_FAIL(err, ENOMEM, "names");
    if (to->name.n) memcpy(v, to->name.v, to->name.n * sizeof *v);
    v[to->name.n++] = copy;
    to->name.v = v;
    return CDMPP_OK;
}

static cdmpp_status read_side(cd_sample_scan *s, cd_sample_scan_kind kind, cd_arena *arena,
                              side *to, cdmpp_err *err) {
    cd_sample_scan all = *s;
    char name[CD_SAMPLE_NAME];
    to->given = true;
    if (cd_sample_scan_word(&all, "-all") && all.at == all.end) return CDMPP_OK;
    do {
        CD_TRY(cd_sample_scan_name(s, kind, name, err));
        CD_TRY(add(arena, to, name, err));
    } while (s->at < s->end);
    return CDMPP_OK;
}

static cdmpp_status read_sides(cd_sample_scan *s, cd_sample_scan_kind kind, cd_arena *arena,
                               side *train, side *test, cdmpp_err *err) {
    for (bool more = true; more;) {
        cd_sample_scan piece, start;
        more = cd_sample_scan_cut(s, ',', &piece);
        start = piece;
        side *to = cd_sample_scan_word(&piece, "train")  ? train
                   : cd_sample_scan_word(&piece, "test") ? test
                                                         : NULL;
        if (!to) return cd_sample_scan_expected(&start, "train-NAME... or test-NAME...", err);
        if (to->given)
            return cd_sample_scan_expected(&start, to == train ? "'train' once" : "'test' once",
                                           err);
        CD_TRY(read_side(&piece, kind, arena, to, err));
    }
    if (!train->name.n && !test->name.n)
        return CD_FAIL(err, EPARSE,
                       "expected names on at least one side: '%.80s' leaves all on both", s->text);
    return CDMPP_OK;
}

cdmpp_status cd_sample_split(const cd_dataset *d, const char *text, cd_arena *arena,
                             cd_split_spec *spec, cdmpp_err *err) {
    cd_sample_scan s = {d, text, 0, strlen(text)};
    side train = {0}, test = {0};
    const bool device = cd_sample_scan_word(&s, "by_device:");
    if (!device && !cd_sample_scan_word(&s, "by_net:"))
        return cd_sample_scan_expected(&s, "by_device: or by_net:", err);
    CD_TRY(read_sides(&s, device ? CD_SAMPLE_SCAN_DEVICE : CD_SAMPLE_SCAN_NETWORK, arena, &train,
                      &test, err));
    spec->kind = device ? CD_SPLIT_DEVICE : CD_SPLIT_NETWORK;
    spec->train_name = train.name;
    spec->test_name = test.name;
    return CDMPP_OK;
}
