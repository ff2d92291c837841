/* Result of a game as a table and as JSON: who is where, the loads, and what the equilibrium costs
 * beside the optimum. */
#include "base/text/text.h"
#include "predictor/partition/games/game.h"

/* An optimum that was not found within the effort is "-", and there is no price of anarchy then. */
void cd_game_print(const cd_game_file *g, const cd_game_result *r, cd_buf *b) {
    const uint32_t n = g->g.n_device;
    cd_buf_puts(b, "operator                 equilibrium       takes  optimum\n");
    for (uint32_t i = 0; i < g->g.n_op; i++) {
        const size_t k = (size_t)i * n + r->where[i];
        cd_buf_putf(b, "%-24s %-12s ", g->name[i], g->device[r->where[i]]);
        cd_units_put_seconds_wide(b, g->seconds[k] + g->transfer[k]);
        cd_buf_putf(b, "  %s\n", r->best ? g->device[r->best[i]] : "-");
    }
    cd_buf_puts(b, "\nloads: ");
    for (uint32_t d = 0; d < n; d++) {
        cd_buf_putf(b, "%s%s ", d ? ", " : "", g->device[d]);
        cd_units_put_seconds(b, r->load[d]);
    }
    cd_buf_puts(b, "\nequilibrium: all done after ");
    cd_units_put_seconds(b, r->makespan_s);
    cd_buf_putf(b, ", reached by %u moves; nobody gains by moving alone (largest gain %.2g)\n",
                r->n_move, r->gain);
    if (!r->best) {
        cd_buf_puts(b, "optimum: not found within the effort\n");
        return;
    }
    cd_buf_puts(b, "optimum: ");
    cd_units_put_seconds(b, r->best_s);
    cd_buf_putf(b, "; price of anarchy %.3f\n", r->price);
}

static void put_where(cd_json_writer *w, const char *key, const cd_game_file *g,
                      const uint32_t *where) {
    cd_json_write_key(w, key);
    if (!where) {
        cd_json_write_null(w);
        return;
    }
    cd_json_write_open(w, '[');
    for (uint32_t i = 0; i < g->g.n_op; i++) cd_json_write_str(w, g->device[where[i]]);
    cd_json_write_close(w, ']');
}

void cd_game_print_json(const cd_game_file *g, const cd_game_result *r, cd_buf *out) {
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_json_write_key(&w, "operators"), cd_json_write_open(&w, '[');
    for (uint32_t i = 0; i < g->g.n_op; i++) cd_json_write_str(&w, g->name[i]);
    cd_json_write_close(&w, ']');
    put_where(&w, "equilibrium", g, r->where);
    put_where(&w, "optimum", g, r->best);
    cd_json_write_key(&w, "load_s"), cd_json_write_open(&w, '{');
    for (uint32_t d = 0; d < g->g.n_device; d++)
        cd_json_write_member_real(&w, g->device[d], r->load[d]);
    cd_json_write_close(&w, '}');
    cd_json_write_member_real(&w, "makespan_s", r->makespan_s);
    cd_json_write_member_real(&w, "optimum_s", r->best_s);
    cd_json_write_member_real(&w, "price_of_anarchy", r->price);
    cd_json_write_member_real(&w, "largest_gain", r->gain);
    cd_json_write_member_int(&w, "moves", r->n_move);
    cd_json_write_close(&w, '}');
}
