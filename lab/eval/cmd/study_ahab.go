package main

import _ "github.com/xdpmon/xdpmon/lab/eval/ahab" // a study
