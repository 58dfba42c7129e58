package main

import _ "github.com/xdpmon/xdpmon/lab/eval/precision" // a study
