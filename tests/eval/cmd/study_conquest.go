package main

import _ "github.com/xdpmon/xdpmon/tests/eval/conquest" // a study
