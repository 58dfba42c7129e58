package main

import _ "github.com/xdpmon/xdpmon/lab/eval/fridge" // a study
