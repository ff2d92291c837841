# built-in networks: the list, and names that are nearly right
cdmpp-profile --list-networks | head -n 3
cdmpp-replay --list-networks >a; cdmpp-profile --list-networks | cmp - a && tail -n +2 a | wc -l
cdmpp-replay --list-networks --json | cut -c 1-160
for n in bert-huge yolo squeezenet_v1 resnet50v2 nosuch; do cdmpp-profile --list-ops --model-name $n; done
cdmpp-tune --model-name bert-huge --dry-run; echo "exit $?"
echo "--- names of other systems: OpBench's, EOP's, Hugging Face's"
for n in squeezenet_v1.1 inception_v3 mobilenet bert nasnetalarge dpn68 gan rcnn vit-b-16 bert-large-uncased; do cdmpp-profile --list-ops --network $n | tail -n 1; done
echo "--- where they come from, in OpBench's words too"
export XDG_CACHE_HOME=$PWD/cache
from() { echo "$1 $2: $(cdmpp-profile --list-ops --model-source "$1" --network "$2" 2>&1 | grep -v '^Try' | tail -n 1 | sed "s|$PWD|HERE|; s|$ROOT|ROOT|")" | sed "s|$PWD|HERE|; s|$ROOT|ROOT|"; }
for s in 'simple matmul' 'simple resnet-18' 'transformers t5' 'transformers vgg' 'transformers nobody' 'url resnet-18' 'local mobilenet' 'cloud bert'; do from $s; done
from url "file://$ROOT/examples/resnet18.onnx"
mkdir net; cp "$ROOT/examples/resnet18.onnx" net; tar -czf one.tar.gz net; cp net/resnet18.onnx net/again.onnx; tar -czf two.tar.gz net
from remoteonnx "file://$PWD/one.tar.gz"
from remoteonnx "file://$PWD/two.tar.gz"
cdmpp-tune --network "file://$PWD/one.tar.gz" --dry-run -q | wc -l
cdmpp-tune --model-source simple --model-name resnet-18 --dry-run; echo "exit $?"
