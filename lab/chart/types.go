// Package chart renders the Helm chart of deploy/helm with Helm's own engine, and decodes what it makes into Kubernetes' own types.
package chart

import meta "k8s.io/apimachinery/pkg/apis/meta/v1"

// What the chart uses of the Prometheus operator's types (monitoring.coreos.com/v1), whose module brings its controller along.

type serviceMonitor struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Selector  meta.LabelSelector `json:"selector"`
		Endpoints []endpoint         `json:"endpoints"`
	} `json:"spec"`
}

type podMonitor struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Selector            meta.LabelSelector `json:"selector"`
		PodMetricsEndpoints []endpoint         `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

type endpoint struct {
	Port     string `json:"port"`
	Interval string `json:"interval"`
}

type prometheusRule struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Record        string            `json:"record"`
				Alert         string            `json:"alert"`
				Expr          string            `json:"expr"`
				For           string            `json:"for"`
				KeepFiringFor string            `json:"keep_firing_for"`
				Labels        map[string]string `json:"labels"`
				Annotations   map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}
