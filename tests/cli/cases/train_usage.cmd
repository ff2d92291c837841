cdmpp-train 2>&1
cdmpp-train --autotune s.yaml --trial c.yaml
cdmpp-train --trial --finetune m c.yaml
cdmpp-train a.yaml b.yaml
cdmpp-train --print-confg a.yaml
cdmpp-train --usage
