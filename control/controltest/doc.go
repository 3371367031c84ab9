// SPDX-License-Identifier: Apache-2.0

// Package controltest runs reconcilers on a cluster in memory, following a
// script, and records what they did. It is for tests only.
//
// A case is a datadriven directive "run" whose input is the script and whose
// output is the transcript. Each case starts with an empty cluster, a clock at
// zero and a cloud without instances. A script has one command a line:
//
//	claim a {…}            create NodeClaim a of pool "default", unlaunched
//	node n a {…}           create Node n of the instance of claim a, ready, unregistered
//	pool p {…}             create NodePool p
//	class c {…}            create KWOKNodeClass c, ready
//	ec2class c {…}         create EC2NodeClass c for a cluster named "cluster", of which nothing is known
//	overlay o {…}          create NodeOverlay o for everything
//	pod x n {…}            create Pod x bound to Node n
//	pdb b x {…}            create PodDisruptionBudget b for pods labeled app=x
//	change claim/a {…}     merge into object and status; a change of spec raises the generation
//	condition claim/a Registered=True Reason
//	                       set one condition at the present time and generation
//	delete claim/a         delete through the API
//	remove-finalizer node/n
//	advance 5m             move the clock
//	cloud fail Create insufficient-capacity | nodeclass-not-ready | error TEXT… | create-error REASON TEXT…
//	cloud slow 3           let Delete answer nil three times before not-found
//	cloud lose a           make the instance of claim a vanish
//	cloud add ID CLAIM     an instance no one launched here, started now; further
//	                       words: ageless (unknown start), deleting
//	api fail patch-status conflict | error | not-found
//	                       let the next such call fail: get, list, create, delete, patch, patch-status
//	crash 3                let the process die after its third write from now, to the
//	                       API or the cloud; a new one takes over
//	freeze a, thaw a       let reads show claim a as it is now, as a lagging cache does
//	reconcile a            call the reconciler; "reconcile a hash" names one of several
//	quietly COMMAND…       leave the command out of the transcript
//	show claim/a           everything of the object
//	show claim/a [ spec.   what begins with [ (conditions) or spec. only
//
// A {…} is YAML in flow style, merged over what the command makes. What
// changed in the API, at the cloud, in events and in metrics is printed below
// each reconcile; the other commands print nothing.
package controltest
