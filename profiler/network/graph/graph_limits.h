/* graph_limits -- what the file of a network may declare, and how much may become of it. One table,
 * since a file of 100 bytes can ask for 2^60 of anything: each number below is checked where the
 * thing is made, and what is over it is an error (ERANGE), content that stays unknown, or an
 * operator that is named as unknown.
 *
 *   a limit                of what                                                        beyond it
 *   CD_GRAPH_MAX_RANK      dimensions of a tensor                                         error
 *   CD_GRAPH_MAX_ELEMENTS  elements of a tensor; a dimension of 0 counts as 1             error
 *   CD_GRAPH_MAX_VALUE     elements of a tensor whose content is kept                     unknown
 *     content
 *   CD_GRAPH_MAX_VALUES    of all tensors whose content is kept, together                 unknown
 *     content
 *   CD_GRAPH_MAX_STEPS     elements read to compute contents (folding), of all operators  unknown
 *     content
 *   CD_GRAPH_MAX_NOTE      notes (cd_graph_note); the last one says how many more         counted
 *   CD_ONNX_MAX_NODE       nodes read, those of functions and bodies each time            error
 *   CD_ONNX_MAX_EXPANDED   of these, nodes that calls, branches and bodies add            error
 *   CD_ONNX_MAX_RUNS       runs of a Loop or Scan                                         error
 *   CD_ONNX_MAX_NESTED     calls, branches and bodies in each other                       error
 *   CD_ONNX_MAX_DEPTH      messages of the file in each other                             error
 *   CD_ONNX_MAX_STRIPPED   bytes of a file without the contents of weights                error
 *   CD_ONNX_QUOTA_*        memory of what is unpacked: the first number and so much for   error
 *                          each byte, at most the last number
 *   CD_FUSE_MAX_STEPS      time steps of a recurrent layer, taken apart                   unknown
 *     operator
 *   CD_FUSE_MAX_NODE       operators after fusion has taken them apart                    error */
#ifndef CD_GRAPH_LIMITS_H
#define CD_GRAPH_LIMITS_H
#include <stddef.h>
#include <stdint.h>

#define CD_GRAPH_MAX_RANK      8
#define CD_GRAPH_MAX_ELEMENTS  ((int64_t)1 << 48)
#define CD_GRAPH_MAX_VALUE     65536
#define CD_GRAPH_MAX_VALUES    (1 << 23)
#define CD_GRAPH_MAX_STEPS     ((int64_t)1 << 27)
#define CD_GRAPH_MAX_NOTE      64
#define CD_ONNX_MAX_NODE       (1U << 20)
#define CD_ONNX_MAX_EXPANDED   (1U << 17)
#define CD_ONNX_MAX_RUNS       (1 << 16)
#define CD_ONNX_MAX_NESTED     16
#define CD_ONNX_MAX_DEPTH      64
#define CD_ONNX_MAX_STRIPPED   ((size_t)256 << 20)
#define CD_ONNX_QUOTA_BASE     ((size_t)16 << 20)
#define CD_ONNX_QUOTA_PER_BYTE 40
#define CD_ONNX_QUOTA_MOST     ((size_t)2 << 30)
#define CD_FUSE_MAX_STEPS      (1 << 14)
#define CD_FUSE_MAX_NODE       (1U << 21)
#endif
