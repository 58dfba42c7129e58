package main

import _ "github.com/xdpmon/xdpmon/lab/eval/reorder" // a study
