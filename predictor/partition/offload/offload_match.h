/* offload_match -- applies the rules of offload_rules.h to a loaded network: names its operators as
 * rules do, and finds the devices where each group may run.
 *
 *   network      Conv(x, w, b)   BatchNormalization   Relu  ─┐
 *   workload     group 1: {Conv, BatchNormalization, Relu}  ─┤
 *                                                            │
 *     ┌──────────────────────────────────────────────────────┘
 *     ├─> operators   conv1 (conv2d) ─> conv1.bias (bias_add) ─> bn1 (batch_norm) ─> relu1
 *     └─> groups      may run on {cpu, npu}, or why not
 *
 *   (1) operators are the graph's, by TVM's names (docs/reference/offload.md has all): Conv is
 *       conv2d by its rank, its bias an operator of its own ("conv1.bias", bias_add) as TVM imports
 *       it; MatMul is dense with a weight, else batch_matmul. Views, folded nodes and nodes whose
 *       result is not read are no operators: an operator that reads a view reads the tensor behind
 *       it. A change of layout in the workload is a layout_transform that no operator reads, so it
 *       is in no chain;
 *   (2) attributes: dtype, from (of the first operand), shape "1x64x56x56", rank, d0 d1 ..., of
 *       four dimensions n c h w, of three n c w, of two n c; elements, bytes, flop, mac (1:
 *       multiplies and adds); windows: kernel, kernel_h, kernel_w, stride.., dilation.., pad,
 *       groups, depthwise, in_c, bias; products: m, n, k, weights; everything else under ONNX's
 *       name, lists as "0x2x3x1". Numbers as numbers;
 *   (3) times are known of groups only, so a group runs as one: on a device where each of its
 *       operators is supported or in a match that lies within the group; a match over several
 *       groups takes all of them or none. A match that leaves out an operator of a group "cuts" it;
 *       cuts are listed. The group can then run on the device only if the operators that are left
 *       out can;
 *   (4) a group without a definition stays on the host, whatever the rules say;
 *   (5) a place line moves the whole group. Errors with both lines: two place lines that put one
 *       group on two devices; a place line on a device that cannot run another operator of the
 *       group; on a device that is not there;
 *   (6) devices: a name of the rules is the device of that name, else all devices of that name and
 *       a number (cpu: cpu0, cpu1). Devices that no rule names may run everything. The first device
 *       is the rules' host.
 * Built by one thread, then read-only. Load and rules must outlive it. */
#ifndef CD_OFFLOAD_MATCH_H
#define CD_OFFLOAD_MATCH_H
#include "predictor/network/network.h"
#include "predictor/partition/offload/offload_rules.h"
#include "predictor/partition/placement/placement.h"

/* ---- operators ---- */
typedef struct cd_offload_ops {
    cd_offload_graph graph;
    /* (n_op) of the network's graph; CD_GRAPH_NONE: a change of layout */
    uint32_t *node;
    uint32_t *of_first, *of_n, *of; /* (n_op) its groups: of[of_first .. of_first + of_n) */
    uint32_t *in_first, *in_n, *in; /* (n_group) a group's operators */
    bool *mac;                      /* (n_group) multiplies and adds */
} cd_offload_ops;

/* Lists the operators of a network and their groups; all in `a`. Errors: ENOMEM. */
cdmpp_status cd_offload_ops_list(const cd_network_loaded *l, cd_arena *a, cd_offload_ops *out,
                                 cdmpp_err *err);

/* ---- rules on them ---- */
typedef struct cd_offload_match_options {
    const cd_network_loaded *loaded;
    const cd_offload_rules *rules;
    uint32_t n_device;         /* 0: the rules' own */
    const char *const *device; /* (n_device) */
} cd_offload_match_options;

typedef struct cd_offload_group {
    uint32_t allowed;    /* bit d: on device d by itself */
    uint32_t together;   /* bit d: there only with the other groups of a match */
    uint32_t pin;        /* CD_PLACE_FREE: none */
    const char *pin_why; /* "npu.rules:7"; of a place line on several devices too */
    /* (n_device) why not by itself: "bn1 (batch_norm): no support line for batch_norm"; NULL: it
     * may */
    const char *const *why;
} cd_offload_group;

typedef struct cd_offload_cut { /* (3) a match that goes through a group */
    uint32_t match;             /* of found.match */
    uint32_t group, op;         /* op: the first of the group that it leaves out */
    bool stops;                 /* the group cannot be there through this match */
} cd_offload_cut;

typedef struct cd_offload_net_match {
    cd_arena arena;
    const cd_network_loaded *loaded;
    const cd_offload_rules *rules;
    cd_offload_ops ops;
    cd_offload found; /* on operators, devices as the rules number them */
    uint32_t n_device, n_group, n_joint, n_cut;
    const char *const *device; /* (n_device) */
    uint32_t *rule_of;         /* (n_device) the rules' device; UINT32_MAX: they do not name it */
    cd_offload_group *group;   /* (n_group) of the workload */
    /* (n_joint) matches over several groups, one of which cannot be on that device by itself;
     * device: as here; members: groups */
    cd_offload_match *joint;
    uint32_t *member;
    cd_offload_cut *cut; /* (n_cut) */
} cd_offload_net_match;

/* Applies the rules. Errors: those of cd_offload_apply; EINVALID ((5); the first device is not the
 * rules' host), with path and line; ENOMEM. Free after an error too. */
cdmpp_status cd_offload_match_apply(const cd_offload_match_options *a, cd_offload_net_match *out,
                                    cdmpp_err *err);
void cd_offload_match_done(cd_offload_net_match *r); /* zeroed is fine */
/* Prints a cut: "pattern conv_relu (npu.rules:3) cuts through group Conv_1: Conv_1.bias (bias_add)
 * is not in it, so the group stays where it was". */
void cd_offload_match_print_cut(const cd_offload_net_match *r, uint32_t cut, cd_buf *out);
#endif
