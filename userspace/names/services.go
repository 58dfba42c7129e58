package names

// services are the names of ports that servers listen on, as IANA registers them or as commonly used. Ports without a well-known service have none:
// clients' ports are chosen from 32,768 on.
var services = map[uint16]string{
	20: "ftp-data", 21: "ftp", 22: "ssh", 23: "telnet", 25: "smtp", 37: "time", 43: "whois", 49: "tacacs", 53: "dns", 67: "dhcp", 68: "dhcp-client", 69: "tftp", 70: "gopher",
	79: "finger", 80: "http", 88: "kerberos", 110: "pop3", 111: "rpcbind", 113: "ident", 119: "nntp", 123: "ntp", 135: "msrpc", 137: "netbios-ns", 138: "netbios-dgm",
	139: "netbios-ssn", 143: "imap", 161: "snmp", 162: "snmp-trap", 179: "bgp", 194: "irc", 199: "smux", 201: "appletalk", 264: "bgmp", 318: "tsp", 381: "hp-openview",
	389: "ldap", 427: "slp", 443: "https", 445: "smb", 464: "kpasswd", 465: "submissions", 497: "retrospect", 500: "isakmp", 502: "modbus", 512: "rexec", 513: "rlogin",
	514: "syslog", 515: "lpd", 520: "rip", 521: "ripng", 540: "uucp", 546: "dhcpv6-client", 547: "dhcpv6", 548: "afp", 554: "rtsp", 563: "nntps", 587: "submission",
	591: "filemaker", 593: "rpc-http", 623: "ipmi", 631: "ipp", 636: "ldaps", 639: "msdp", 646: "ldp", 674: "acap", 749: "kadmin", 853: "dns-over-tls", 860: "iscsi",
	873: "rsync", 902: "vmware", 989: "ftps-data", 990: "ftps", 992: "telnets", 993: "imaps", 995: "pop3s", 1080: "socks", 1099: "rmi", 1194: "openvpn", 1433: "mssql",
	1434: "mssql-monitor", 1494: "ica", 1521: "oracle", 1645: "radius-old", 1646: "radius-acct-old", 1701: "l2tp", 1720: "h323", 1723: "pptp", 1755: "mms", 1812: "radius",
	1813: "radius-acct", 1883: "mqtt", 1900: "ssdp", 1935: "rtmp", 1985: "hsrp", 2000: "sccp", 2049: "nfs", 2055: "netflow", 2082: "cpanel", 2083: "cpanel-ssl",
	2123: "gtp-c", 2152: "gtp-u", 2181: "zookeeper", 2222: "ssh-alt", 2375: "docker", 2376: "docker-tls", 2379: "etcd", 2380: "etcd-peer", 2483: "oracle-tcp",
	2484: "oracle-tls", 2598: "ica-session", 3000: "http-dev", 3128: "http-proxy", 3260: "iscsi", 3268: "ldap-gc", 3269: "ldaps-gc", 3306: "mysql", 3389: "rdp",
	3478: "stun", 3632: "distcc", 3784: "bfd", 4222: "nats", 4369: "epmd", 4500: "ipsec-nat-t", 4789: "vxlan", 5000: "upnp", 5004: "rtp", 5005: "rtcp", 5044: "logstash",
	5060: "sip", 5061: "sips", 5201: "iperf3", 5222: "xmpp", 5269: "xmpp-server", 5349: "stuns", 5353: "mdns", 5355: "llmnr", 5432: "postgresql", 5601: "kibana",
	5671: "amqps", 5672: "amqp", 5683: "coap", 5684: "coaps", 5900: "vnc", 5985: "winrm", 5986: "winrm-tls", 6000: "x11", 6081: "geneve", 6343: "sflow", 6379: "redis",
	6443: "kubernetes", 6514: "syslog-tls", 6633: "openflow-old", 6653: "openflow", 6667: "irc", 6697: "ircs", 6881: "bittorrent", 7000: "cassandra", 7946: "swarm",
	8000: "http-alt", 8008: "http-alt", 8080: "http-alt", 8086: "influxdb", 8088: "http-alt", 8123: "clickhouse", 8140: "puppet", 8291: "winbox", 8333: "bitcoin",
	8443: "https-alt", 8472: "vxlan-old", 8500: "consul", 8883: "mqtts", 9000: "http-alt", 9042: "cassandra-cql", 9090: "prometheus", 9092: "kafka", 9093: "alertmanager",
	9100: "node-exporter", 9200: "elasticsearch", 9300: "elasticsearch-peer", 9418: "git", 9999: "http-alt", 10000: "webmin", 10050: "zabbix-agent", 10051: "zabbix",
	10250: "kubelet", 11211: "memcached", 11434: "ollama", 15672: "rabbitmq", 16509: "libvirt", 25565: "minecraft", 25826: "collectd", 26257: "cockroachdb",
	27015: "source-engine", 27017: "mongodb", 51820: "wireguard",
}
