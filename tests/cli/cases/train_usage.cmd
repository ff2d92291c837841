cdmpp-train 2>&1 | head -n 2
