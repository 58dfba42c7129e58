package main

import _ "github.com/xdpmon/xdpmon/lab/eval/conquest" // a study
