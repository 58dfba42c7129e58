package main

import _ "github.com/xdpmon/xdpmon/tests/eval/carpe" // a study
