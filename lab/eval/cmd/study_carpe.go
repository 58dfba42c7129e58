package main

import _ "github.com/xdpmon/xdpmon/lab/eval/carpe" // a study
