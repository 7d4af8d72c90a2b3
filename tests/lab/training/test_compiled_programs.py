"""Transfers and products of a compiled program's text, by hand."""

from zoo.lab.training import compiled_programs
from zoo.lab.training.product_counts import Product

PROGRAM = """
HloModule step, num_partitions=8

%body (p: f32[3,5]) -> f32[3,5] {
  %p = f32[3,5] parameter(0)
  %w = f32[5,5] constant(1)
  %h = f32[3,5] dot(%p, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %s = f32[3,5] all-reduce(%h), replica_groups=[4,2]<=[8]
}

ENTRY %main (a: f32[3,5]) -> f32[3,5] {
  %a = f32[3,5] parameter(0)
  %l = f32[3,5] while(%a), condition=%c, body=%body, backend_config={"known_trip_count":{"n":"7"}}
  %g = bf16[12] all-gather(%l), replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}
  %m = pred[6] reduce-scatter(%g), replica_groups=mesh['x'=4,'y'=2] {'y'}
  %o = pred[6] reduce-scatter(%g), replica_groups=mesh['x'=4,'y'=2], device_ids=([2,4]T(1,0)) {'x'}
  ROOT %e = (s32[2], u8[4]) all-to-all(%m, %m)
}
"""


def test_a_compiled_program_by_hand():
    collectives, products = compiled_programs.read(PROGRAM)
    assert {(c.kind, c.size, c.devices, c.in_loop, c.times): c.sent for c in collectives} == {
        ("all-reduce", 60, 2, True, 7): 60,  # half of it to be summed, half of it to be known
        ("all-gather", 24, 4, False, 1): 18,
        ("reduce-scatter", 6, 2, False, 1): 6,
        ("reduce-scatter", 6, 4, False, 1): 18,  # of a mesh whose devices are in another order
        ("all-to-all", 12, 8, False, 1): 10.5,
    }
    assert products == {Product(2 * 3 * 5 * 5, 60 + 100 + 60): 7}


STARTED = """
HloModule step, num_partitions=4

ENTRY %main (a: f32[3]) -> f32[12] {
  %a = f32[3] parameter(0)
  %p = (f32[3], f32[3]) collective-permute-start(%a), source_target_pairs={{0,1}}
  %r = f32[3] all-reduce-start(%a), replica_groups={{0,1},{2,3}}
  %s = ((f32[8], f32[4]), (f32[2], f32[1])) reduce-scatter-start(%b, %c), dimensions={0}
  ROOT %g = (f32[3], f32[12]) all-gather-start(%a), dimensions={0}
}
"""


def test_the_operand_of_a_started_transfer_is_not_sent():
    collectives, _ = compiled_programs.read(STARTED)
    assert {(c.kind, c.size, c.devices): c.sent for c in collectives} == {
        ("collective-permute", 12, 4): 12,
        ("all-reduce", 12, 2): 12,
        ("all-gather", 48, 4): 36,
        ("reduce-scatter", 12, 4): 36,
    }


# As TPU's compiler writes a loop, and a collective that is shared out over what runs meanwhile.
TPU = """
HloModule step, num_partitions=4

%condition (p: (s32[], f32[5])) -> pred[] {
  %limit = s32[] constant(16)
  %p = (s32[], f32[5]) parameter(0)
  %number = s32[] get-tuple-element(%p), index=0
  ROOT %less = pred[] compare(%number, %limit), direction=LT
}

%begun (a: f32[3]) -> (f32[3], f32[12]) {
  %a = f32[3] parameter(0)
  %g.1 = f32[12] all-gather(%a), channel_id=1, dimensions={0}
  ROOT %c.1 = (f32[3], f32[12]) custom-call(%g.1), custom_call_target="AsyncCollectiveStart"
}

%async_collective_fusion.2 (a: f32[3]) -> f32[12] {
  %a = f32[3] parameter(0)
  ROOT %g.2 = f32[12] all-gather(%a), channel_id=1, dimensions={0}
}

%done (a: f32[3]) -> f32[12] {
  %a = f32[3] parameter(0)
  %g.3 = f32[12] all-gather(%a), channel_id=1, dimensions={0}
  ROOT %c.3 = f32[12] custom-call(%g.3), custom_call_target="AsyncCollectiveDone"
}

%body (p: (s32[], f32[5])) -> (s32[], f32[5]) {
  %p = (s32[], f32[5]) parameter(0)
  %f = f32[12] fusion(%a), kind=kOutput, calls=%async_collective_fusion.2
  %r = f32[5] all-reduce(%x), channel_id=2
}

ENTRY %main (a: f32[3]) -> f32[12] {
  %a = f32[3] parameter(0)
  %start = (f32[3], f32[12]) fusion(%a), kind=kCustom, calls=%begun
  %w = (s32[], f32[5]) while(%t), condition=%condition, body=%body
  ROOT %end = f32[12] fusion(%start), kind=kCustom, calls=%done
}
"""


def test_loops_and_asynchronous_collectives_of_tpus():
    collectives, _ = compiled_programs.read(TPU)
    assert {(c.kind, c.size, c.in_loop): c.times for c in collectives} == {
        ("all-gather", 48, False): 1,
        ("all-reduce", 20, True): 16,
    }
