package compile

// SixQueries are the queries of table 4.1. Ports are counted only where a connection is opened: replies to a scan have the scanned
// port as source, and as many destination ports as the scanner has used.
const SixQueries = `
superspreader: count distinct dst by src > 1000 in 30s
ddos-victim: count distinct src by dst > 1000 in 30s
port-scan: count distinct dport by src+dst > 100 in 30s if tcp.syn and not tcp.ack
heavy-pair: count distinct timestamp by src+dst > 10000 in 30s
heavy-flow: count distinct timestamp by src+sport+dst+dport > 10000 in 30s
syn-flood: count distinct src+sport by dst+dport > 5000 in 30s if tcp.syn and not tcp.ack
`

// ManyQueries are 26 queries over eleven attributes, thresholds from 100 to 10000, like the set of section 4.5.2.
const ManyQueries = SixQueries + `
spread-pairs: count distinct dst+dport by src > 1000 in 30s
spread-from-port: count distinct dst by src+sport > 1000 in 30s
spread-to-port: count distinct dst by src+dport > 500 in 30s
spread-of-port: count distinct dst by dport > 5000 in 30s
victim-port: count distinct src by dst+dport > 1000 in 30s
victim-from-port: count distinct src by dst+sport > 500 in 30s
popular-port: count distinct src by dport > 5000 in 30s
clients-of-port: count distinct src+sport by dst+dport > 2000 in 30s
scanner: count distinct dport by src > 500 in 30s if tcp.syn and not tcp.ack
scanned: count distinct dport by dst > 1000 in 30s if tcp.syn and not tcp.ack
source-ports: count distinct sport by src > 2000 in 30s
source-ports-pair: count distinct sport by src+dst > 500 in 30s
source-ports-to: count distinct sport by dst+dport > 2000 in 30s
pairs-of-port: count distinct src+dst by dport > 5000 in 30s
pairs-of-protocol: count distinct src+dst by proto > 10000 in 30s
flows-of-source: count distinct src+dst+sport+dport by src > 2000 in 30s
flows-of-destination: count distinct src+dst+sport+dport by dst > 2000 in 30s
ports-of-pair: count distinct sport+dport by src+dst > 200 in 30s
heavy-source: count distinct timestamp by src > 10000 in 30s
heavy-destination: count distinct timestamp by dst > 10000 in 30s
`

// Ready is the text of a set that is ready to use: "six" or "many".
func Ready(set string) string {
	if set == "many" {
		return ManyQueries
	}
	return SixQueries
}
