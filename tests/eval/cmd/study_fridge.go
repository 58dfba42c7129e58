package main

import _ "github.com/xdpmon/xdpmon/tests/eval/fridge" // a study
