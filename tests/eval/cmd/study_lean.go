package main

import _ "github.com/xdpmon/xdpmon/tests/eval/lean" // a study
