/* netgraphint -- what makers and readers of network graphs share. Private. */
#ifndef CD_NETWORK_GRAPH_INTERNAL_H
#define CD_NETWORK_GRAPH_INTERNAL_H
#include "base/text/text.h"
#include "predictor/network/network_graph.h"

typedef struct cd_network_edge {
    uint32_t from, to;
} cd_network_edge;

struct cd_network_builder {
    cd_network_graph *g;             /* NULL: used up */
    cd_dict text;               /* every text of its nodes */
    uint32_t *owner, *suffix;   /* (n_owner) by text: node of this name + 1, 0 none; the next "#k" to try */
    size_t n_owner;
    cd_network_node *node;           /* (n_node) */
    size_t n_node, cap_node;
    cd_network_edge *edge;           /* (n_edge) as added */
    size_t n_edge, cap_edge;
};

/* The node of this name. */
bool cd_network_builder_find(const cd_network_builder *m, cd_str name, uint32_t *id);

/* (n_node + 1): into[first[k] .. first[k+1]) come before node k, each once, in the order they were added. */
typedef struct cd_network_in_edges {
    uint32_t *first, *into;
} cd_network_in_edges;
/* order (n_node): every node behind those before it, and else as they were added. Errors: EINVALID (a cycle), ENOMEM. */
cdmpp_status cd_network_graph_order(const cd_network_builder *m, const cd_network_in_edges *e, cd_arena *scratch, uint32_t *order, cdmpp_err *err);

/* ---- readers ----
 * The text is walked, not parsed as a whole: a node's tree is gone before the next node is read. */
typedef struct cd_network_file {
    const char *path, *text;
    size_t len;
    long line;                  /* of `at`; lines are counted on */
    const char *at;
    cd_arena scratch;           /* one value */
    cd_dict names;              /* of the networks so far */
    cd_network_graph_bad *bad;       /* NULL: the first wrong network ends it */
    void *ctx;
    cd_network_graph **g;            /* (n) */
    size_t n, cap, n_bad;
    cdmpp_err first;            /* wrong network */
} cd_network_file;

/* The line of a place in the text is added to the error. */
cdmpp_status cd_network_file_error_at(cd_network_file *f, cdmpp_status st, const char *p, cdmpp_err *err);
/* The tree of one value; it lives until the next call. Errors: EPARSE, ENOMEM, with the line. */
cdmpp_status cd_network_file_parse(cd_network_file *f, cd_str value, CD_KEEP const cd_json **out, cdmpp_err *err);
/* A text, NUL-terminated, that lives until the next cd_network_file_parse. Errors: ESCHEMA, ENOMEM. */
cdmpp_status cd_network_file_text(cd_network_file *f, const cd_json *v, CD_KEEP const char **out, cdmpp_err *err);
/* The same of a member's name as cd_json_member gives it. */
cdmpp_status cd_network_file_key(cd_network_file *f, cd_str key, CD_KEEP const char **out, cdmpp_err *err);
/* cd_json_member and cd_json_item with the line where the member or item begins. */
cdmpp_status cd_network_file_member(cd_network_file *f, cd_str *rest, CD_KEEP cd_str *key, CD_KEEP cd_str *value, bool *more, cdmpp_err *err);
cdmpp_status cd_network_file_next(cd_network_file *f, cd_str *rest, CD_KEEP cd_str *value, bool *more, cdmpp_err *err);
/* Each item of an array's text in turn; the error gets its index and line. */
typedef cdmpp_status cd_network_file_item(void *ctx, cd_str text, size_t k, cdmpp_err *err);
cdmpp_status cd_network_file_each(cd_network_file *f, cd_str array, cd_network_file_item *item, void *ctx, cdmpp_err *err);
/* A time, 0 or more; NaN where null. Errors: ESCHEMA, ERANGE. */
cdmpp_status cd_network_file_seconds(const cd_json *v, double *out, cdmpp_err *err);
/* A function's name without what TVM puts in front of all. */
CD_KEEP const char *cd_network_file_short_func(const char *func);
/* g, or NULL and the reason `st`: kept, reported to `bad`, or an error. name: of the network, for people. */
cdmpp_status cd_network_file_add_graph(cd_network_file *f, CD_TAKE cd_network_graph *g, const char *name, cdmpp_status st, cdmpp_err *err);

/* A text for "%.*s" in a message. */
#define CD_NETWORK_FILE_SHORT(s) (int)((s).n < 40 ? (s).n : 40), (s).p

/* A node of the own form. Its texts live until the next cd_network_file_parse. Errors: ESCHEMA, ERANGE, EUNSUPPORTED, with the member as key. */
typedef struct cd_network_file_node {
    cd_network_node n;               /* first */
    cd_library_op_record question;
    const cd_json *after;       /* NULL: none */
    const char *strange;        /* operator of its question that nobody knows; NULL */
} cd_network_file_node;
/* From a tree, and back as one object of JSON; unknown values are not written. */
cdmpp_status cd_network_file_read_node(cd_network_file *f, const cd_json *v, cd_network_file_node *out, cdmpp_err *err);
void cd_network_file_write_node(cd_buf *b, const cd_network_graph *g, const cd_network_node *n);

/* All networks of a file of that form. */
cdmpp_status cd_network_graph_read_own(cd_network_file *f, cdmpp_err *err);
cdmpp_status cd_network_graph_read_measured(cd_network_file *f, cdmpp_err *err);
cdmpp_status cd_network_graph_read_tvm(cd_network_file *f, cdmpp_err *err);
#endif
