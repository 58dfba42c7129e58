package agent

// SixEach is the part of an agent's configuration that gives six algorithms with registers of their own to every interface xdpmon-d*, as a hypervisor measures
// its guests: of the soak tests here, and of lab/weight.
const SixEach = `limits: {interfaces: 1024, instances: 1024, memory: 8GiB}
instances:
  - name: guests
    interfaces: ["xdpmon-d*"]
    each: true
    algorithms:
      fridge: {}
      precision: {}
      hhh: {}
      reorder: {}
      beaucoup: {queries: "scan: count distinct dport by src > 100 in 10s"}
      lean: {}
`
