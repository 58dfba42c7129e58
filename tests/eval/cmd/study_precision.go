package main

import _ "github.com/xdpmon/xdpmon/tests/eval/precision" // a study
