/* Which convolutions to merge: cost(network) = least over merges of the stages' cost of the network
 * that is written anew with them. Merged operators are tasks like others, and what cuts their
 * results into parts is an operator with a time. Sets are decided one after the other, each with
 * all ways to part it; sets of different blocks do not touch each other, so only within a block
 * something may be lost. */
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/partition/plan/partition_internal.h"
#include "profiler/network/merge/merge.h"

typedef struct {
    const char *key;
    double solo_s, bytes;
} priced;

typedef struct {
    cd_partition *p;
    cd_arena own;
    priced *known; /* (n_known) tasks that have a time */
    uint32_t n_known, cap_known;
    const cd_graph *g;   /* the network as it is */
    cd_merge_set *found; /* (n_found) */
    uint32_t n_found;
    cd_merge_set *kept; /* (n_kept) merged so far */
    uint32_t n_kept;
    double best_s;
} merger;

void cd_partition_merged_free(cd_partition_merged *m) {
    cd_partition_staging_free(&m->in);
    cd_shard_cost_free(m->in.cost);
    cd_network_load_free(&m->loaded);
    cd_arena_free(&m->arena);
    *m = (cd_partition_merged){0};
}

/* ---- times ---- */

static const priced *find(const merger *m, const char *key) {
    for (uint32_t k = 0; key && k < m->n_known; k++)
        if (!strcmp(m->known[k].key, key)) return &m->known[k];
    return NULL;
}

static cdmpp_status learn(merger *m, const char *key, double solo_s, double bytes, cdmpp_err *err) {
    if (!key || find(m, key)) return CDMPP_OK;
    if (m->n_known == m->cap_known) {
        const uint32_t cap = m->cap_known ? m->cap_known * 2 : 256;
        priced *v = CD_NEWN(&m->own, priced, cap);
        if (!v) return CD_FAIL(err, ENOMEM, "%u tasks", cap);
        if (m->n_known) memcpy(v, m->known, m->n_known * sizeof *v);
        m->known = v, m->cap_known = cap;
    }
    const char *kept = cd_str_dup(&m->own, (cd_str){key, strlen(key)});
    if (!kept) return CD_FAIL(err, ENOMEM, "a task");
    m->known[m->n_known++] = (priced){kept, solo_s, bytes};
    return CDMPP_OK;
}

static cdmpp_status learn_all(merger *m, const cd_partition_staging *s, cdmpp_err *err) {
    for (uint32_t k = 0; k < s->net->n_op; k++)
        CD_TRY(learn(m, s->net->op[k].key, s->solo_s[k], s->bytes[k], err));
    return CDMPP_OK;
}

/* Tasks without a time are scored together, with the schedules that the files of the options have
 * for them. */
static cdmpp_status score(merger *m, cd_partition_merged *c, cdmpp_err *err) {
    const cd_shard_net *net = &c->net;
    cd_shard_cost_want *want = CD_NEWN(&c->arena, cd_shard_cost_want, (size_t)net->n_op + 1);
    const char **key = CD_NEWN(&c->arena, const char *, (size_t)net->n_op + 1);
    size_t n = 0, n_key = 0;
    if (!want || !key) return CD_FAIL(err, ENOMEM, "%u operators", net->n_op);
    for (uint32_t k = 0; k < net->n_op; k++)
        if (!find(m, net->op[k].key)) {
            if (net->op[k].key) key[n_key++] = net->op[k].key;
            want[n++] = (cd_shard_cost_want){.op = k};
        }
    qsort(key, n_key, sizeof *key, cd_sort_by_text);
    size_t once = 0;
    for (size_t i = 0; i < n_key; i++)
        if (!i || strcmp(key[i], key[once - 1]) != 0) key[once++] = key[i];
    if (once) CD_TRY(cd_partition_schedules(m->p, key, once, err));
    CD_TRY(cd_partition_cost(m->p, net, &c->loaded, &c->in.cost, err));
    CD_TRY(cd_shard_cost_prepare(c->in.cost, want, n, err));
    for (size_t i = 0; i < n; i++) {
        const uint32_t k = want[i].op;
        CD_TRY(cd_partition_staging_time(m->p, &c->in, k, err));
        CD_TRY(learn(m, net->op[k].key, c->in.solo_s[k], c->in.bytes[k], err));
    }
    for (uint32_t k = 0; k < net->n_op; k++) {
        const priced *x = find(m, net->op[k].key);
        if (x) c->in.solo_s[k] = x->solo_s, c->in.bytes[k] = x->bytes;
    }
    return CDMPP_OK;
}

/* ---- a network with merges ---- */

/* Each operator is in the block in which its nodes were; one of no node, a change of layout, comes
 * with what it reads. */
static void blocks(const merger *m, cd_partition_merged *c) {
    const cd_workload *w = c->loaded.work, *before = m->p->loaded.work;
    for (uint32_t k = 0; k < w->n_group; k++) {
        const cd_workload_group *g = &w->group[k];
        uint32_t b = 0;
        for (uint32_t i = 0; i < g->n_after; i++)
            if (c->in.block[g->after[i]] > b) b = c->in.block[g->after[i]];
        for (uint32_t i = 0; i < g->n_node; i++) {
            const uint32_t group = before->node[c->origin[g->node[i]]].group;
            if (group != CD_GRAPH_NONE && m->p->plain.block[group] > b)
                b = m->p->plain.block[group];
        }
        c->in.block[k] = b;
    }
}

static cdmpp_status open_merged(merger *m, const cd_merge_set *set, uint32_t n,
                                cd_partition_merged *c, cdmpp_err *err) {
    cd_graph *g;
    *c = (cd_partition_merged){0};
    CD_TRY(cd_merge_apply(m->g, set, n, &g, &c->origin, err));
    CD_TRY(cd_partition_network(m->p, g, &c->loaded, err));
    CD_TRY(cd_plan_run_shard_net(&c->loaded, &c->arena, &c->net, err));
    CD_TRY(cd_partition_staging_new(&c->in, &c->loaded, &c->net, &c->arena, err));
    blocks(m, c);
    CD_TRY(score(m, c, err));
    return cd_partition_staging_search(m->p, &c->in, m->p->plain.n_stage, &c->arena, err);
}

/* ---- the choice ---- */

/* The next way to part n members, as numbers of parts in order of appearance; false: that was the
 * last. */
static bool next_way(uint32_t *part, uint32_t n) {
    for (uint32_t i = n; i-- > 1;) {
        uint32_t most = 0;
        for (uint32_t j = 0; j < i; j++)
            if (part[j] > most) most = part[j];
        if (part[i] > most) continue;
        part[i]++;
        for (uint32_t j = i + 1; j < n; j++) part[j] = 0;
        return true;
    }
    return false;
}

/* Parts of two or more members. */
static uint32_t sets_of(const cd_merge_set *all, const uint32_t *part, cd_merge_set *out) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < all->n; k++) {
        cd_merge_set s = {0};
        for (uint32_t i = 0; i < all->n; i++)
            if (part[i] == k) s.node[s.n++] = all->node[i];
        if (s.n > 1) out[n++] = s;
    }
    return n;
}

/* Members of one block: a stage goes across no other. */
static bool in_one_block(const merger *m, const cd_merge_set *s) {
    const cd_workload *w = m->p->loaded.work;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t a = w->node[s->node[0]].group, b = w->node[s->node[i]].group;
        if (a == CD_GRAPH_NONE || b == CD_GRAPH_NONE ||
            m->p->plain.block[a] != m->p->plain.block[b])
            return false;
    }
    return true;
}

/* All ways to part a set, on top of what was kept before; the best stays. */
static cdmpp_status decide(merger *m, const cd_merge_set *set, cdmpp_err *err) {
    uint32_t part[CD_MERGE_MOST] = {0}, before = m->n_kept, n_best = 0;
    cd_merge_set best[CD_MERGE_MOST];
    if (!in_one_block(m, set)) return CDMPP_OK;
    do {
        cd_partition_merged c;
        if (cd_partition_stopped(m->p))
            return CD_FAIL(err, EINTERRUPTED, "while merges were planned");
        const uint32_t n = sets_of(set, part, &m->kept[before]);
        if (!n) continue;
        const cdmpp_status st = open_merged(m, m->kept, before + n, &c, err);
        if (!st && c.in.stages_s < m->best_s * (1 - 1e-9)) {
            m->best_s = c.in.stages_s;
            memcpy(best, &m->kept[before], n * sizeof *best);
            n_best = n;
        }
        cd_partition_merged_free(&c);
        if (st) return st;
        m->p->merged.n_tried++;
    } while (next_way(part, set->n));
    memcpy(&m->kept[before], best, n_best * sizeof *best);
    m->n_kept += n_best;
    return CDMPP_OK;
}

/* ---- what is told ---- */

/* Times of the operators that hold a node which stands for one of the set's. The first one is named
 * after all members. */
static cdmpp_status tell(merger *m, cd_partition_merged *c, const cd_merge_set *s,
                         cd_partition_merge *out, cdmpp_err *err) {
    const cd_workload *w = m->p->loaded.work, *now = c->loaded.work;
    cd_buf b = {0};
    *out = (cd_partition_merge){.work = cd_merge_work(m->g, s),
                                .block = m->p->plain.block[w->node[s->node[0]].group]};
    for (uint32_t i = 0; i < s->n; i++) {
        out->parts_s += m->p->plain.solo_s[w->node[s->node[i]].group];
        cd_buf_putf(&b, "%s%.60s", i ? "+" : "", m->g->node[s->node[i]].name);
    }
    uint32_t first = s->node[0];
    for (uint32_t i = 1; i < s->n; i++)
        if (s->node[i] < first) first = s->node[i];
    for (uint32_t k = 0; k < now->n_group; k++)
        for (uint32_t i = 0; i < now->group[k].n_node; i++)
            if (c->origin[now->group[k].node[i]] == first) {
                out->merged_s += c->in.solo_s[k];
                c->in.is_merged[k] =
                    c->in.is_merged[k] ||
                    !strcmp(m->g->node[first].op, now->graph->node[now->group[k].node[i]].op);
                break;
            }
    out->name = b.oom ? NULL : cd_str_dup(&c->arena, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    return out->name ? CDMPP_OK : CD_FAIL(err, ENOMEM, "a name");
}

static cdmpp_status save(const cd_partition_merged *c, const char *path, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_onnx_write(c->loaded.source, &b, err);
    if (!st) st = cd_file_write(path, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status keep(merger *m, cdmpp_err *err) {
    cd_partition_merged *c = &m->p->merged;
    const uint32_t tried = c->n_tried;
    CD_TRY(open_merged(m, m->kept, m->n_kept, c, err));
    cd_partition_merge *v = CD_NEWN(&c->arena, cd_partition_merge, (size_t)m->n_kept + 1);
    if (!v) return CD_FAIL(err, ENOMEM, "%u merges", m->n_kept);
    for (uint32_t k = 0; k < m->n_kept; k++) CD_TRY(tell(m, c, &m->kept[k], &v[k], err));
    c->set = v, c->n_set = m->n_kept, c->n_found = m->n_found, c->n_tried = tried;
    c->has = true;
    return CDMPP_OK;
}

cdmpp_status cd_partition_merges(cd_partition *p, cdmpp_err *err) {
    merger m = {.p = p, .g = p->loaded.source, .best_s = p->plain.stages_s};
    cdmpp_status st = learn_all(&m, &p->plain, err);
    if (!st) st = cd_merge_find(m.g, &m.own, &m.found, &m.n_found, err);
    if (!st && !(m.kept = CD_NEWN(&m.own, cd_merge_set,
                                  (size_t)m.n_found * CD_MERGE_MOST + CD_MERGE_MOST)))
        st = CD_FAIL(err, ENOMEM, "%u sets", m.n_found);
    for (uint32_t k = 0; k < m.n_found && !st; k++) st = decide(&m, &m.found[k], err);
    p->merged.n_found = m.n_found;
    if (!st && m.n_kept) st = keep(&m, err);
    if (!st && p->o->save_merged) {
        if (!m.n_kept)
            cd_log_put(p->o->log, CD_LOG_WARNING,
                       "--save-merged: nothing is merged, so %s is not written", p->o->save_merged);
        else st = save(&p->merged, p->o->save_merged, err);
    }
    cd_arena_free(&m.own);
    return st;
}
