// Package pack places pods: first on capacity that exists or is on its way,
// then on new nodes, cheapest plan first.
//
// # Vocabulary
//
//   - tier: the pools of equal weight. A shape uses the heaviest tier that has
//     any offer for it; only limits and rules between pods push it to the next.
//   - candidate: an offer worth considering: no other that could stand in for
//     it is as cheap, as roomy and open to as many shapes.
//   - floor: the minValues of a pool for one label. There a candidate is a box:
//     the room that all types of a list have which spans enough values.
//   - prepaid: nodes that reservations still give. They are spent before
//     anything is bought in a tier.
//   - problem: what package cover is asked: the demands that have pods left, as
//     items, and the candidates of a tier.
//   - bin: a number of equal new nodes, as package cover chose them.
//   - cell: a combination of domains (say a zone) that rules between pods tell
//     apart; a part is the pods of a demand that are settled for one.
//   - bundle: pods that must share a node, bought for as one.
package pack
