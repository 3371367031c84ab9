// Package differential holds only tests: it compares what we plan with what
// kube-scheduler's own code says about the same cluster.
//
// It is a module of its own so that nothing else depends on k8s.io/kubernetes.
package differential
