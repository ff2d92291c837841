# built-in networks: the list, and names that are nearly right
cdmpp-profile --list-networks | head -n 3
cdmpp-replay --list-networks >a; cdmpp-profile --list-networks | cmp - a && tail -n +2 a | wc -l
cdmpp-replay --list-networks --json | cut -c 1-160
for n in bert yolo squeezenet_v1.1 mobilenet resnet50v2 vit-b-16 nosuch; do cdmpp-profile --list-ops --model-name $n; done
cdmpp-tune --model-name bert --dry-run; echo "exit $?"
