package main

import _ "github.com/xdpmon/xdpmon/tests/eval/beaucoup" // a study
