/* Answers for people: loads, memory, operators of a prompt's step and of a step that decodes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/serving/serving.h"

static void put_range(cd_buf *b, double low, double high) {
    if (isnan(low)) {
        cd_buf_puts(b, " - |");
        return;
    }
    cd_buf_puts(b, " ");
    cd_units_put_seconds(b, low);
    cd_buf_puts(b, " to ");
    cd_units_put_seconds(b, high);
    cd_buf_puts(b, " |");
}

void cd_serving_gpu_text(const char *gpu, const cd_serving_about *a, cd_buf *b) {
    cd_buf_puts(b, gpu);
    if (!a->news) return;
    if (a->twin) cd_buf_putf(b, " (twin of %s", a->twin);
    else
        cd_buf_putf(b, " (not trained on%s",
                    a->news & CD_LLM_OP_NEW_VENDOR ? ", nor its vendor" : "");
    cd_buf_puts(b, a->rows ? ", own rows)" : ")");
}

static void put_load(const cd_serving_said *v, cd_buf *b) {
    const cd_serving_config *c = v->c;
    cd_buf_puts(b, "| "), cd_serving_gpu_text(c->gpu, &v->about, b);
    cd_buf_putf(b, " | %g | %g | %g | %g | ", c->worker.tp, c->worker.pp, c->worker.dp,
                c->worker.ep);
    if (c->concurrency > 0) cd_buf_putf(b, "%g |", c->concurrency);
    else if (c->rate > 0) cd_buf_putf(b, "%g /s |", c->rate);
    else cd_buf_puts(b, "as given |");
    if (!v->a) {
        char text[1024];
        cd_buf_putf(b, " %s | | | | | | |\n", cdmpp_err_format(v->why, text, sizeof text));
        return;
    }
    cd_buf_puts(b, " ");
    cd_units_put_seconds(b, v->a->r.ttft_s);
    cd_buf_puts(b, " |");
    put_range(b, v->a->ttft_low_s, v->a->ttft_high_s);
    cd_buf_puts(b, " ");
    cd_units_put_seconds(b, v->a->r.tpot_s);
    cd_buf_puts(b, " |");
    put_range(b, v->a->tpot_low_s, v->a->tpot_high_s);
    cd_buf_putf(b, " %.4g | %.4g | %.3g |\n", v->a->r.tokens_s, v->a->per_gpu, v->a->r.waiting);
}

/* Of the first configuration, as the tables of steps. */
static void put_total(const cd_serving_said *v, cd_buf *b) {
    cd_buf_putf(b, "\n%.0f requests: all have their last token ", v->c->requests);
    if (isnan(v->a->r.total_s))
        cd_buf_puts(
            b, "at a time that is not known (prompts and decoding have engines of their own)\n");
    else cd_buf_puts(b, "after "), cd_units_put_seconds(b, v->a->r.total_s), cd_buf_puts(b, "\n");
}

static void put_engine(const char *of, const cd_serving_worker *w, cd_buf *b) {
    cd_buf_putf(b, "%g engine%s for %s of %g GPUs (tp %g, pp %g, dp %g, ep %g)", w->count,
                w->count > 1 ? "s" : "", of, w->tp * w->pp * w->dp, w->tp, w->pp, w->dp, w->ep);
}

/* Where prompts and decoding have engines of their own, the line of the table has room for those of
 * prompts alone. */
static void put_engines(const cd_serving_said *v, cd_buf *b) {
    if (!(v->c->decode.count > 0)) return;
    cd_buf_puts(b, "\n");
    put_engine("prompts", &v->c->worker, b);
    cd_buf_puts(b, ", ");
    put_engine("decoding", &v->c->decode, b);
    cd_buf_putf(b, ": %g GPUs; memory and limits are those of decoding\n", v->a->gpus);
}

/* Where there are several answers, which one this is of. */
static void put_whose(const cd_serving_said *v, cd_buf *b) {
    const cd_serving_worker *w = &v->c->worker;
    cd_buf_putf(b, " (%s, tp %g, pp %g, dp %g, ep %g, %g in flight)", v->c->gpu, w->tp, w->pp,
                w->dp, w->ep, v->c->concurrency);
}

static void put_memory_line(const cd_serving_said *v, bool several, cd_buf *b) {
    const cd_serving_memory *m = &v->a->memory;
    cd_buf_puts(b, "\nmemory of a GPU");
    if (several) put_whose(v, b);
    cd_buf_putf(b,
                ": weights %.2f GB, cache %.4g kB a token and room for %.0f tokens, activations "
                "%.2f GB, reserve %.2f GB, of %.2f GB\n",
                m->weights * 1e-9, m->token * 1e-3, m->tokens, m->activations * 1e-9,
                m->reserve * 1e-9, m->limit * 1e-9);
    const cd_str prompts = cd_enum_names_at(CD_SERVING_PROMPTS, (int)v->a->limit.prompts);
    cd_buf_putf(b, "a step: at most %.0f tokens and %.0f sequences; prompts %.*s\n",
                v->a->limit.tokens, v->a->limit.sequences, (int)prompts.n, prompts.p);
}

/* Of the first answers: a long list has it in JSON. */
static void put_memory(const cd_serving_said *v, size_t n, const cd_serving_said *first,
                       cd_buf *b) {
    enum { MOST = 4 };
    size_t put = 0;
    put_engines(first, b);
    for (size_t i = 0; i < n && put < MOST; i++) {
        if (!v[i].a) continue;
        put_memory_line(&v[i], n > 1, b);
        put++;
    }
}

static void put_sizes(const cd_llm_op_record *r, cd_buf *b) {
    for (size_t i = 0; i < cd_llm_op_n_size((cd_llm_op_kind)r->kind); i++)
        cd_buf_putf(b, "%s%s %.10g", i ? ", " : "",
                    cd_llm_op_param_name(cd_llm_op_size_param((cd_llm_op_kind)r->kind, i)),
                    r->size[i]);
}

/* Of the GPU's part of a step. */
static double gpu_s(const cd_serving_rows *r) { return r->total_s - r->host_s; }

static void put_new(const cd_serving_rows *r, cd_buf *b) {
    bool any = false;
    for (int k = 0; k < CD_LLM_OP_N_NEWS; k++) {
        const cd_str w = cd_enum_names_at(CD_LLM_OP_NEWS, k);
        if (!(r->new_s[k] > 0)) continue;
        cd_buf_putf(b, "%s%.*s %.3g %%",
                    any ? ", " : "\nnot in the training rows, by share of the operators' time: ",
                    (int)w.n, w.p, 100 * r->new_s[k] / gpu_s(r));
        any = true;
    }
    if (any) cd_buf_puts(b, "\n");
    if (r->unknown_s > 0)
        cd_buf_putf(b,
                    "no experiment tells how far off %.3g %% of the operators' time is: there is "
                    "no interval\n",
                    100 * r->unknown_s / gpu_s(r));
}

static void put_rows(const char *title, const cd_serving_rows *r, const cd_serving_said *whose,
                     cd_buf *b) {
    cd_buf_putf(b, "\n%s", title);
    if (whose) put_whose(whose, b);
    cd_buf_puts(b, ": ");
    cd_units_put_seconds(b, r->total_s);
    cd_buf_puts(b, "\n\n| operator | kind | type | runs | time | share % | answer | sizes |\n| --- "
                   "| --- | --- | --: | --: | --: | --- | --- |\n");
    for (size_t i = 0; i < r->n; i++) {
        const cd_serving_row *v = &r->v[i];
        const cd_str how = cd_enum_names_at(CD_LLM_OP_HOWS, (int)v->how);
        char news[CD_LLM_OP_NEWS_TEXT];
        cd_llm_op_news_text(v->news, news);
        cd_buf_putf(b, "| %s | %s | %s | %g | ", v->name,
                    cd_llm_op_kind_name((cd_llm_op_kind)v->r.kind),
                    cd_llm_op_type_name((cd_llm_op_type)v->r.type), v->count);
        cd_units_put_seconds(b, v->total_s);
        if (v->hidden) cd_buf_puts(b, " | beside | ");
        else cd_buf_putf(b, " | %.1f | ", 100 * v->total_s / r->total_s);
        cd_buf_putf(b, "%.*s%s%s", (int)how.n, how.p, news[0] ? ", new " : "", news);
        if (v->alike)
            cd_buf_putf(b, ", as %s", cd_llm_op_type_name((cd_llm_op_type)(v->alike - 1)));
        cd_buf_putf(b, "%s%s | ", v->twin ? ", twin " : "", v->twin ? v->twin : "");
        put_sizes(&v->r, b);
        cd_buf_puts(b, " |\n");
    }
    cd_buf_puts(b, "| host, lift | | | 1 | ");
    cd_units_put_seconds(b, r->host_s);
    cd_buf_putf(b, " | %.1f | | |\n", 100 * r->host_s / r->total_s);
    put_new(r, b);
    if (r->waits)
        cd_buf_puts(b, "\nthe GPU waits for the host, which hands out the kernels of a step no "
                       "faster (layer_s in docs/reference/serving.md)\n");
}

/* Stack and lengths only where they are those of all. */
static void put_common(const cd_serving_said *v, size_t n, cd_buf *b) {
    bool stack = true, kernels = v->c->kernels[0], isl = true, osl = true;
    for (size_t i = 1; i < n; i++) {
        const cd_serving_config *c = v[i].c;
        stack &= !strcmp(c->stack, v->c->stack);
        kernels &= !strcmp(c->kernels, v->c->kernels);
        isl &= !(c->isl < v->c->isl || c->isl > v->c->isl);
        osl &= !(c->osl < v->c->osl || c->osl > v->c->osl);
    }
    cd_buf_putf(b, "%s, %.4g billion parameters", v->m->name,
                cd_serving_model_parameters(v->m) * 1e-9);
    if (stack) cd_buf_putf(b, ", %s", v->c->stack);
    if (kernels) cd_buf_putf(b, ", kernels %s", v->c->kernels);
    if (isl)
        cd_buf_putf(b,
                    v->c->given ? ", prompts of %.4g tokens in the mean" : ", prompts of %g tokens",
                    v->c->isl);
    if (osl) cd_buf_putf(b, v->c->given ? ", %.4g generated" : ", %g generated", v->c->osl);
    cd_buf_puts(b, "\n\n");
}

void cd_serving_text(const cd_serving_said *v, size_t n, cd_buf *b) {
    const cd_serving_said *first = NULL;
    double level = 0;
    for (size_t i = n; i-- > 0;)
        if (v[i].a) first = &v[i], level = v[i].a->level;
    put_common(v, n, b);
    char range[40] = "interval"; /* of none, where all are refused */
    if (first) snprintf(range, sizeof range, "%g %% interval", 100 * level);
    cd_buf_putf(b,
                "| GPU | tp | pp | dp | ep | in flight | TTFT | %s | TPOT | %s | tokens/s | "
                "tokens/s/GPU | queue |\n",
                range, range);
    cd_buf_puts(
        b, "| --- | --: | --: | --: | --: | --: | --: | --- | --: | --- | --: | --: | --: |\n");
    for (size_t i = 0; i < n; i++) put_load(&v[i], b);
    if (!first) return;
    if (first->c->given) put_total(first, b);
    const cd_serving_said *whose = n > 1 ? first : NULL;
    put_memory(v, n, first, b);
    if (first->prompt) put_rows("a step with one prompt", first->prompt, whose, b);
    if (first->decode) put_rows("a step that decodes", first->decode, whose, b);
}

/* ---- JSON ---- */
/* Names and values of the question are those of a table of docs/reference/llm-operators.md, but
 * `kind`, which is its `op`. */
static void json_row(cd_json_writer *w, const cd_serving_row *v, double step_s) {
    const cd_str how = cd_enum_names_at(CD_LLM_OP_HOWS, (int)v->how);
    char news[CD_LLM_OP_NEWS_TEXT];
    cd_llm_op_news_text(v->news, news);
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "name", v->name),
        cd_json_write_member_str(w, "kind", cd_llm_op_kind_name((cd_llm_op_kind)v->r.kind));
    cd_json_write_member_str(w, "dtype", cd_llm_op_type_name((cd_llm_op_type)v->r.type));
    if (v->r.kv != v->r.type)
        cd_json_write_member_str(w, "kv_dtype", cd_llm_op_type_name((cd_llm_op_type)v->r.kv));
    if (v->r.skew > 0) {
        char text[40];
        snprintf(text, sizeof text, "power_law_%g", v->r.skew);
        cd_json_write_member_str(w, "distribution", text);
    }
    for (size_t k = 0; k < cd_llm_op_n_size((cd_llm_op_kind)v->r.kind); k++)
        cd_json_write_member_real(
            w, cd_llm_op_param_name(cd_llm_op_size_param((cd_llm_op_kind)v->r.kind, k)),
            v->r.size[k]);
    cd_json_write_member_real(w, "runs", v->count),
        cd_json_write_member_real(w, "total_s", v->total_s);
    cd_json_write_member_real(w, "share", v->hidden ? 0 : v->total_s / step_s),
        cd_json_write_member_strn(w, "how", how.p, how.n);
    if (news[0]) cd_json_write_member_str(w, "new", news);
    if (v->alike)
        cd_json_write_member_str(w, "alike", cd_llm_op_type_name((cd_llm_op_type)(v->alike - 1)));
    if (v->twin) cd_json_write_member_str(w, "twin", v->twin);
    if (v->kernel) cd_json_write_member_str(w, "kernel", v->kernel);
    cd_json_write_close(w, '}');
}

void cd_serving_about_json(cd_json_writer *w, const cd_serving_about *a) {
    char news[CD_LLM_OP_NEWS_TEXT];
    cd_llm_op_news_text(a->news, news);
    if (news[0]) cd_json_write_member_str(w, "new", news);
    else cd_json_write_key(w, "new"), cd_json_write_null(w);
    if (a->twin) cd_json_write_member_str(w, "twin", a->twin);
    if (news[0]) cd_json_write_member_bool(w, "own_rows", a->rows);
}

/* Shares of the operators' time. Nothing is written where nothing is new. */
static void json_new(cd_json_writer *w, const cd_serving_rows *r) {
    double any = r->unknown_s;
    for (int k = 0; k < CD_LLM_OP_N_NEWS; k++) any += r->new_s[k];
    if (!(any > 0)) return;
    cd_json_write_key(w, "new_share"), cd_json_write_open(w, '{');
    for (int k = 0; k < CD_LLM_OP_N_NEWS; k++) {
        char name[16];
        const cd_str v = cd_enum_names_at(CD_LLM_OP_NEWS, k);
        snprintf(name, sizeof name, "%.*s", (int)v.n, v.p);
        if (r->new_s[k] > 0) cd_json_write_member_real(w, name, r->new_s[k] / gpu_s(r));
    }
    cd_json_write_close(w, '}');
    cd_json_write_member_real(w, "no_interval_share", r->unknown_s / gpu_s(r));
}

void cd_serving_rows_json(cd_json_writer *w, const cd_serving_rows *r) {
    cd_json_write_member_real(w, "total_s", r->total_s),
        cd_json_write_member_real(w, "host_s", r->host_s),
        cd_json_write_member_real(w, "sigma", r->sigma);
    cd_json_write_member_bool(w, "host_bound", r->waits);
    json_new(w, r);
    cd_json_write_key(w, "operators"), cd_json_write_open(w, '[');
    for (size_t i = 0; i < r->n; i++) json_row(w, &r->v[i], r->total_s);
    cd_json_write_close(w, ']');
}

static void json_rows(cd_json_writer *w, const char *key, const cd_serving_rows *r) {
    cd_json_write_key(w, key), cd_json_write_open(w, '{');
    cd_serving_rows_json(w, r);
    cd_json_write_close(w, '}');
}

static void json_config(cd_json_writer *w, const cd_serving_said *v) {
    const cd_serving_config *c = v->c;
    if (c->id) cd_json_write_member_str(w, "id", c->id);
    cd_json_write_member_str(w, "gpu", c->gpu), cd_serving_about_json(w, &v->about),
        cd_json_write_member_str(w, "stack", c->stack);
    if (c->kernels[0]) cd_json_write_member_str(w, "kernels", c->kernels);
    const struct {
        const char *key;
        double v;
    } f[] = {{"tp", c->worker.tp},
             {"pp", c->worker.pp},
             {"dp", c->worker.dp},
             {"ep", c->worker.ep},
             {"engines", c->worker.count},
             {"decode_workers", c->decode.count},
             {"isl", c->isl},
             {"osl", c->osl},
             {"concurrency", c->concurrency},
             {"rate", c->rate}};
    for (size_t i = 0; i < sizeof f / sizeof *f; i++)
        cd_json_write_member_real(w, f[i].key, f[i].v);
    if (!(c->decode.count > 0)) return;
    cd_json_write_member_real(w, "decode_tp", c->decode.tp),
        cd_json_write_member_real(w, "decode_pp", c->decode.pp);
    cd_json_write_member_real(w, "decode_dp", c->decode.dp),
        cd_json_write_member_real(w, "decode_ep", c->decode.ep);
}

void cd_serving_layout_json(cd_json_writer *w, const cd_serving_layout *l) {
    cd_json_write_member_str(w, "dtype", cd_llm_op_type_name(l->linear)),
        cd_json_write_member_str(w, "experts_dtype", cd_llm_op_type_name(l->expert));
    cd_json_write_member_str(w, "attention_dtype", cd_llm_op_type_name(l->project)),
        cd_json_write_member_str(w, "shared_dtype", cd_llm_op_type_name(l->shared));
    cd_json_write_member_str(w, "kv_dtype", cd_llm_op_type_name(l->kv)),
        cd_json_write_member_str(w, "other_dtype", cd_llm_op_type_name(l->base));
}

static void json_answer(cd_json_writer *w, const cd_serving_answer *a) {
    cd_serving_layout_json(w, &a->layout);
    const struct {
        const char *key;
        double v;
    } f[] = {{"ttft_s", a->r.ttft_s},
             {"ttft_low_s", a->ttft_low_s},
             {"ttft_high_s", a->ttft_high_s},
             {"ttft_median_s", a->r.ttft_median_s},
             {"ttft_p99_s", a->r.ttft_p99_s},
             {"tpot_s", a->r.tpot_s},
             {"tpot_low_s", a->tpot_low_s},
             {"tpot_high_s", a->tpot_high_s},
             {"tpot_p99_s", a->r.tpot_p99_s},
             {"request_s", a->r.request_s},
             {"duration_s", a->r.total_s},
             {"level", a->level},
             {"tokens_s", a->r.tokens_s},
             {"tokens_s_gpu", a->per_gpu},
             {"tokens_s_user", a->per_user},
             {"gpus", a->gpus},
             {"running", a->r.running},
             {"waiting", a->r.waiting},
             {"requests", a->r.requests},
             {"idle_schedulers", a->r.idle},
             {"put_back", a->r.put_back},
             {"weights_bytes", a->memory.weights},
             {"cache_bytes_token", a->memory.token},
             {"cache_tokens", a->memory.tokens},
             {"activation_bytes", a->memory.activations},
             {"reserve_bytes", a->memory.reserve},
             {"limit_bytes", a->memory.limit}};
    for (size_t i = 0; i < sizeof f / sizeof *f; i++)
        cd_json_write_member_real(w, f[i].key, f[i].v);
}

static void json_measured(cd_json_writer *w, const cd_serving_said *v) {
    if (v->c->ttft_s > 0) cd_json_write_member_real(w, "measured_ttft_s", v->c->ttft_s);
    if (v->c->tpot_s > 0) cd_json_write_member_real(w, "measured_tpot_s", v->c->tpot_s);
}

void cd_serving_json(const cd_serving_said *v, size_t n, bool rows, cd_buf *b) {
    cd_json_writer w = {.out = b};
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "model_type", v->m->name),
        cd_json_write_member_real(&w, "parameters", cd_serving_model_parameters(v->m));
    cd_json_write_key(&w, "notes"), cd_json_write_open(&w, '[');
    for (size_t i = 0; i < v->m->n_note; i++) cd_json_write_str(&w, v->m->note[i]);
    cd_json_write_close(&w, ']');
    cd_json_write_key(&w, "answers"), cd_json_write_open(&w, '[');
    for (size_t i = 0; i < n; i++) {
        cd_json_write_open(&w, '{');
        json_config(&w, &v[i]);
        if (v[i].a) json_answer(&w, v[i].a);
        json_measured(&w, &v[i]);
        if (!v[i].a) {
            char text[1024];
            cd_json_write_member_str(&w, "refused", cdmpp_err_format(v[i].why, text, sizeof text));
        } else if (rows && v[i].prompt && v[i].decode) {
            json_rows(&w, "prompt_step", v[i].prompt);
            json_rows(&w, "decode_step", v[i].decode);
        }
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']'), cd_json_write_close(&w, '}');
}

/* ---- errors ---- */
typedef struct {
    double *e, sum, inside, known;
    size_t n;
} errors;

static void add(errors *x, double got, double low, double high, double want) {
    if (!(want > 0) || isnan(got)) return;
    x->e[x->n++] = fabs(got / want - 1);
    x->sum += fabs(got / want - 1);
    if (isnan(low)) return;
    x->known++;
    x->inside += low <= want && want <= high;
}

static void put_errors(errors *x, const char *what, cd_buf *b) {
    if (!x->n) return;
    cd_sort_doubles(x->e, x->n);
    cd_buf_putf(b, "| %s | %zu | %.1f | %.1f | %.1f |", what, x->n, 100 * x->sum / (double)x->n,
                100 * cd_sort_median(x->e, x->n), 100 * x->e[x->n * 9 / 10]);
    if (x->known > 0) cd_buf_putf(b, " %.1f |\n", 100 * x->inside / x->known);
    else cd_buf_puts(b, " - |\n");
}

cdmpp_status cd_serving_errors(const cd_serving_said *v, size_t n, cd_buf *b, cdmpp_err *err) {
    errors t = {.e = cd_mem_zalloc(n + 1, sizeof(double))};
    errors p = {.e = cd_mem_zalloc(n + 1, sizeof(double))};
    for (size_t i = 0; t.e && p.e && i < n; i++) {
        if (!v[i].a) continue;
        add(&t, v[i].a->r.ttft_s, v[i].a->ttft_low_s, v[i].a->ttft_high_s, v[i].c->ttft_s);
        add(&p, v[i].a->r.tpot_s, v[i].a->tpot_low_s, v[i].a->tpot_high_s, v[i].c->tpot_s);
    }
    const bool oom = !t.e || !p.e;
    if (!oom && t.n + p.n) {
        cd_buf_puts(b, "| of measured runs | n | MAPE % | median % | 90 % of runs % | in interval "
                       "% |\n| --- | --: | --: | --: | --: | --: |\n");
        put_errors(&t, "TTFT", b);
        put_errors(&p, "TPOT", b);
    }
    cd_mem_free(t.e);
    cd_mem_free(p.e);
    return oom ? CD_FAIL(err, ENOMEM, "%zu errors", n) : CDMPP_OK;
}
