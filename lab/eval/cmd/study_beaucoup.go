package main

import _ "github.com/xdpmon/xdpmon/lab/eval/beaucoup" // a study
