# iterations of training: what the gradient of a network consists of, in operators and in tasks
. "$T/lib.sh"
for n in $(cdmpp-profile --list-networks | sed 1d | cut -d ' ' -f 1 | grep -v -e '-[12][0-9][0-9]$' -e large -e base); do
    kept "$n" cdmpp-profile --list-ops --network "$n" --training --batch-size 2
done
echo "--- tasks"
for n in resnet-18 mobilenet-v3-small dcgan yolov3-tiny squeezenet-1.1 bert-tiny gcn resnet3d-18 layer-norm softmax conv2d matmul-matmul-add; do
    kept "$n" cdmpp-profile --list-tasks --network "$n" --training --target "$CPU" --out-tasks t
    kept_files t
done
