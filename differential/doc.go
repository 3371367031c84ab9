// SPDX-License-Identifier: Apache-2.0

// Package differential holds only tests: it compares what we plan with what
// kube-scheduler's own code says about the same cluster.
//
// Each test draws situations from seeds: nodes and what runs on them, pods that
// wait, pools, volumes. It has them planned as the controller does, from API
// objects on, and carries the plan out in memory, launches becoming Nodes. Then
// the scheduler's framework, with every plugin of its default profile, is asked
// to confirm two things:
//
//   - What we plan it would do: there is an order in which it binds all planned
//     pods one after the other to the nodes planned for them. All orders are
//     tried before it is said that there is none.
//   - What we leave it would leave: once that is done, it accepts no pod that we
//     leave pending, on no node there is and on no node that a pool could launch.
//
// A launch is an offer to become one of several machines; plans are carried out
// once with the machines they count on and once with others.
//
// Where the two may differ, a difference says why; a test fails when one that it
// lists is not met. A rare one is listed with a seed that meets it, which is tried
// before those that every run draws. In one of 1,000 plans a pod may be left that
// could run (docs/differences.md); nothing may be placed that is refused.
//
//	go test ./...                                         # 25,000 situations, others in every run, within a minute
//	go test . -args -seeds=20                             # 20 times as many situations
//	go test . -args -first=4711                           # those of a run that began with this seed
//	go test . -run TestPlans -v -args -seed=17            # one situation, shown as YAML and as a scenario
//	go test . -run TestPlans -args -seeds=5 -stop=1000    # do not stop at the fifth failure
//
// It is a module of its own so that nothing else depends on k8s.io/kubernetes.
package differential
