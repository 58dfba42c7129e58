package main

import _ "github.com/xdpmon/xdpmon/lab/eval/lean" // a study
