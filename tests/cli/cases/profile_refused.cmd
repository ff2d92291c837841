# what cdmpp-profile refuses before it begins, and beside each what is nearly that and gets past it (there is no file t, so that it ends there)
# Long: no sanitizer.
no() { echo "$*: $(cdmpp-profile "$@" 2>&1 >/dev/null | grep -v "^Try" | sed "s/^cdmpp-profile: //")"; }
no records --tasks t r.json
no records --tasks t --dry-run --emit-source r.json
no records --tasks t --dry-run r.json
no records --tasks t --emit-source r.json
no records --tasks t --dry-run --dialect cuda r.json
no records --tasks t --emit-source --dialect cuda r.json
no records --tasks t --dry-run --isa avx3 r.json
no records --tasks t --dry-run --isa avx2 r.json
no records --tasks t --out o.json --rounds 2 r.json -
no records --tasks t --dry-run --rounds 1 r.json -
no records --tasks t --dry-run --rounds 2 r.json
no --worker r.json
no sweep --tasks t
no sweep --tasks t --factor tile,til r.json
no sweep --tasks t --factor tile,fuse r.json
no corun --tasks t --rounds 33 r.json
no draw
no draw --tasks t r.json
no draw --tasks t
no wrap
no store
no store sort --store no.db
no store list
no store import --store s.db
no store import --store s.db no.json
no store list --store no.db list
no store list --store no.db
no store best --store no.db
no store best --store no.db --workload w
no store best --store no.db --operator o
no store near --store no.db --operator o
no store near --store no.db --shape '[[1]]'
no store near --store no.db --operator o --shape '[[1]]'
no store near --store no.db --workload w
no --list-ops
no --list-ops --network no r.json
no --list-ops --network no
no --list-ops --network a.onnx
no --list-ops --network .onnx
no --list-ops --network a.onnx --model-source onnx
no --list-ops --network resnet-18 --dim n=1
no --list-ops --network resnet-18 --input n
no --list-ops --network a.onnx --model-source onnx --input-size 8
no --list-tasks --network no --layout nchx
no --list-tasks --network no --layout nhwc
no --ops --network no --target cuda
no --ops --network no --target llvm
no curves --network no
no curves --network no --sizes batch=1
no curves --network no --sizes batch=2,1
no curves --network no --sizes size=1,2
no curves --network no --sizes batch=1,2 --batch-size 3
no curves --network no --sizes input=1,2 --input-size 3
no curves --network no --sizes batch=1,2 --input-size 3
no curves --network no --sizes input=1,2 --batch-size 3
ls
