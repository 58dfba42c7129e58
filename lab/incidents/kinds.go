package main

// Kinds of findings that are expected.
const (
	networkSlow      = "slow-network"
	serverSlow       = "slow-server"
	receiverSlow     = "slow-receiver"
	notAnswered      = "unanswered"
	lossIsBefore     = "loss-before"
	lossIsHere       = "loss-in-queue"
	lossIsAfter      = "loss-after"
	reorderedAlone   = "reordering"
	queueDelay       = "queue-delay"
	unfairUser       = "unfair-user"
	linkIsFull       = "link-full"
	scan             = "scan"
	flood            = "flood"
	floodOfMany      = "flood-many-sources"
	dnsIsSlow        = "dns-slow"
	dnsUnanswered    = "dns-unanswered"
	ntpIsSlow        = "ntp-slow"
	ntpUnanswered    = "ntp-unanswered"
	networkHeavy     = "heavy-network"
	promiseBroken    = "promise-broken"
	tableTooSmall    = "table-too-small"
	windowsLate      = "windows-late"
	unparsed         = "unparsed"
	directionMissing = "one-direction"
)
