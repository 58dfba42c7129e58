package algo

// Delayed is a Recirculating instance that asks a replay to hold its second passes back, to see what a long pipeline costs.
type Delayed interface {
	// RecirculationDelay is the number of packets that go by before a second pass.
	RecirculationDelay() int
}
