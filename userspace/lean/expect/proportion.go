package expect

import "math"

const (
	proportionTail  = 0.025
	proportionSteps = 60
)

// Proportion is the interval of Clopper and Pearson for a probability of which k of n trials have come true: 95 %, whatever the
// probability is.
func Proportion(k, n float64) (low, high float64) {
	high = 1
	if k > 0 {
		low = betaQuantile(proportionTail, k, n-k+1)
	}
	if k < n {
		high = betaQuantile(1-proportionTail, k+1, n-k)
	}
	return low, high
}

// betaQuantile is where the beta distribution of a and b reaches a share.
func betaQuantile(share, a, b float64) float64 {
	low, high := 0.0, 1.0
	for range proportionSteps {
		if middle := (low + high) / 2; betaBelow(middle, a, b) < share {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// betaBelow is the regularized incomplete beta function, by its continued fraction where that converges fast.
func betaBelow(x, a, b float64) float64 {
	if x <= 0 || x >= 1 {
		return min(max(x, 0), 1)
	}
	if x > (a+1)/(a+b+2) {
		return 1 - betaBelow(1-x, b, a)
	}
	ab, _ := math.Lgamma(a + b)
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	return math.Exp(ab-la-lb+a*math.Log(x)+b*math.Log1p(-x)) / a * betaFraction(x, a, b)
}

// betaFraction is the continued fraction of that function, by the method of Lentz.
func betaFraction(x, a, b float64) float64 {
	const close, most = 1e-12, 1000
	c, d := 1.0, 1/(1-(a+b)*x/(a+1))
	f := d
	step := func(by float64) (factor float64) {
		d = 1 / (1 + by*d)
		c = 1 + by/c
		f *= c * d
		return c * d
	}
	for m := 1.0; m < most; m++ {
		step(m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m)))
		if math.Abs(step(-(a+m)*(a+b+m)*x/((a+2*m)*(a+2*m+1)))-1) < close {
			break
		}
	}
	return f
}

// Student's is the 97.5 % point of Student's distribution with n - 1 degrees of freedom (Cornish and Fisher's expansion; below 3 % off from
// three samples on).
func Student(n float64) float64 {
	const z = 1.959964
	v := n - 1
	return z + (z*z*z+z)/(4*v) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*v*v) + (3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*v*v*v)
}
