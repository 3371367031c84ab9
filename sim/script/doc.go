// SPDX-License-Identifier: Apache-2.0

// Package script is the language in which runs of package sim are written: a
// cluster, what happens to it, and what goes wrong. One thing per line; # begins
// a comment; the order of lines does not matter but for equal moments.
//
//	seed 17                      draws the order of everything that has none
//	run 30m rest 20m             events and faults for 30m, then 20m of peace
//	gates SpotToSpotConsolidation
//
//	type m2 cpu=2 mem=8Gi price=0.10 spot=0.03 zones=a,b
//	pool general limits=nodes:20,cpu:100 budgets=10%,2:Drifted after=30s
//	pods web count=12 cpu=500m mem=1Gi apart=node pdb=1
//
//	at 10m scale web 4           time since the start; or step:500
//	at 12m delete pod web 2      two of its pods, drawn; also node, claim (of a pool), pool
//	at 15m edit general label=v2 the fields of a pool, as in its line
//	at 20m price m2 x3 zone=a    three times what its line says
//	at 22m interrupt 2           the cloud takes two spot instances back
//	at 24m sicken general 1 9m   a node of the pool is not ready for 9 minutes
//	at 26m poison general 20m    a third party taints each node of the pool NoExecute
//	at 26m unready general 20m   no node of the pool becomes ready
//	at 26m unbound web 20m       volumes cannot be provisioned: the scheduler binds no pod
//	at 26m unstarted web 20m     images cannot be pulled: bound pods do not start
//
//	fault conflict every=10 call=patch object=NodeClaim from=5m for=10m
//	fault crash at=120
//
// Parse reads it, String prints it, Draw makes one up from a seed, Shrink cuts
// one down to what still fails, and NewFaults decides at each call whether one
// of the faults hits it. Fields returns the manual of every key.
package script
