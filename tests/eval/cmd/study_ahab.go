package main

import _ "github.com/xdpmon/xdpmon/tests/eval/ahab" // a study
