package main

import _ "github.com/xdpmon/xdpmon/tests/eval/reorder" // a study
