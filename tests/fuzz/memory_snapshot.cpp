// Pickles of memory snapshots: nothing is executed, reading ends, rows make sense. Seeds are cut from a real snapshot,
// in three protocols.

#include "import_fuzz.h"

namespace llmprof::fuzz {
namespace {

void run(std::string_view input) {
  check_importer("memory-snapshot", input);
  importers::MemorySink sink;
  importers::Input content = importers::Input::of_text("input", std::string(input));
  if (!importers::find_importer("memory-snapshot")->parse(content, sink)) return;
  sink.flush();
  for (const auto& row : sink.rows<trace::AllocationRow>()) {
    require(row.bytes >= 0 && row.begin_ns >= 0 && (!row.end_ns || *row.end_ns >= row.begin_ns));
    require(row.device_id && row.kind.id != 0);
  }
  for (const auto& row : sink.rows<trace::MemorySegmentRow>()) require(row.bytes >= 0 && row.device_id > 0);
  for (const auto& row : sink.rows<trace::RangeRow>()) require(row.begin_ns <= row.end_ns);
}

std::string bytes(const char* text, std::size_t size) { return {text, size}; }

std::vector<std::string> seeds() {
  return {
      bytes("(dp0\012Vsegments\012p1\012(lp2\012(dp3\012Vdevice\012p4\012I0\012sVaddress\012p5\012L140043012276224"
            "L\012sVtotal_size\012p6\012I12582912\012sVallocated_size\012p7\012I12582912\012sVactive_size\012p8\012"
            "I12582912\012sVrequested_size\012p9\012I12582912\012sVstream\012p10\012I0\012sVsegment_type\012p11\012"
            "Vlarge\012p12\012sVsegment_pool_id\012p13\012(I0\012I0\012tp14\012sVis_expandable\012p15\012I00\012sV"
            "blocks\012p16\012(lp17\012(dp18\012g5\012L140043012276224L\012sVsize\012p19\012I12582912\012sg9\012I1"
            "2582912\012sVstate\012p20\012Vactive_allocated\012p21\012sVframes\012p22\012(lp23\012(dp24\012Vname\012"
            "p25\012Vkv_block\012p26\012sVfilename\012p27\012V/opt/example/memory_snapshots/mem.py\012p28\012sVlin"
            "e\012p29\012I12\012sa(dp30\012g25\012Vchurn\012p31\012sg27\012V/opt/example/memory_snapshots/mem.py\012"
            "p32\012sg29\012I16\012sa(dp33\012g25\012V<module>\012p34\012sg27\012V/opt/example/memory_snapshots/me"
            "m.py\012p35\012sg29\012I39\012sasasg22\012g23\012sasVdevice_traces\012p36\012(lp37\012(lp38\012(dp39\012"
            "Vaction\012p40\012Vsegment_alloc\012p41\012sVaddr\012p42\012L140043859525632L\012sg19\012I20971520\012"
            "sg10\012I0\012sVtime_us\012p43\012L1794770752998552L\012sVcompile_context\012p44\012VN/A\012p45\012sV"
            "user_metadata\012p46\012V\012p47\012sg22\012(lp48\012(dp49\012g25\012Vweights\012p50\012sg27\012V/opt"
            "/example/memory_snapshots/mem.py\012p51\012sg29\012I10\012sa(dp52\012g25\012V<module>\012p53\012sg27\012"
            "V/opt/example/memory_snapshots/mem.py\012p54\012sg29\012I20\012sasa(dp55\012g40\012Valloc\012p56\012s"
            "g42\012L140043859525632L\012sg19\012I2097152\012sg10\012I0\012sg43\012L1794770752998555L\012sg44\012V"
            "N/A\012p57\012sg46\012g47\012sg22\012g48\012sa(dp58\012g40\012g56\012sg42\012L140043310351360L\012sg1"
            "9\012I315572\012sg10\012I0\012sg43\012L1794770753003036L\012sg44\012VN/A\012p59\012sg46\012g47\012sg2"
            "2\012(lp60\012(dp61\012g25\012Vchurn\012p62\012sg27\012V/opt/example/memory_snapshots/mem.py\012p63\012"
            "sg29\012I16\012sa(dp64\012g25\012V<module>\012p65\012sg27\012V/opt/example/memory_snapshots/mem.py\012"
            "p66\012sg29\012I22\012sasa(dp67\012g40\012Vfree_requested\012p68\012sg42\012L140043310351360L\012sg19"
            "\012I315572\012sg10\012I0\012sg43\012L1794770753003065L\012sg44\012VN/A\012p69\012sg46\012g47\012sg22"
            "\012(lp70\012(dp71\012g25\012Vchurn\012p72\012sg27\012V/opt/example/memory_snapshots/mem.py\012p73\012"
            "sg29\012I18\012sag64\012asa(dp74\012g40\012Vfree_completed\012p75\012sg42\012L140043310351360L\012sg1"
            "9\012I315572\012sg10\012I0\012sg43\012L1794770753003065L\012sg44\012VN/A\012p76\012sg46\012g47\012sg2"
            "2\012g70\012sa(dp77\012g40\012Vsegment_free\012p78\012sg42\012L140043314266112L\012sg19\012I12582912\012"
            "sg10\012I0\012sg43\012L1794770753254773L\012sg44\012VN/A\012p79\012sg46\012g47\012sg22\012(lp80\012g2"
            "4\012a(dp81\012g25\012V<module>\012p82\012sg27\012V/opt/example/memory_snapshots/mem.py\012p83\012sg2"
            "9\012I31\012sasa(dp84\012g40\012g78\012sg42\012L140043012276224L\012sg19\012I27262976\012sg10\012I0\012"
            "sg43\012L1794770753254951L\012sg44\012VN/A\012p85\012sg46\012g47\012sg22\012g80\012saasVallocator_set"
            "tings\012p86\012(dp87\012Vexpandable_segments\012p88\012I00\012sVgarbage_collection_threshold\012p89\012"
            "F0.5\012ssVexternal_annotations\012p90\012(lp91\012(dp92\012Vstage\012p93\012VSTART\012p94\012sVname\012"
            "p95\012Vprefill\012p96\012sVdevice\012p97\012I0\012sVtime_us\012p98\012L1794770752998552L\012sa(dp99\012"
            "g93\012VEND\012p100\012sg95\012g96\012sg97\012I0\012sg98\012L1794770752998555L\012sas.",
            2484),
      bytes("\200\002}q\000(X\010\000\000\000segmentsq\001]q\002}q\003(X\006\000\000\000deviceq\004K\000X\007\000\000"
            "\000addressq\005\212\006\000\000\000N^\177X\012\000\000\000total_sizeq\006J\000\000\300\000X\016\000\000"
            "\000allocated_sizeq\007J\000\000\300\000X\013\000\000\000active_sizeq\010J\000\000\300\000X\016\000\000"
            "\000requested_sizeq\011J\000\000\300\000X\006\000\000\000streamq\012K\000X\014\000\000\000segment_typ"
            "eq\013X\005\000\000\000largeq\014X\017\000\000\000segment_pool_idq\015K\000K\000\206q\016X\015\000\000"
            "\000is_expandableq\017\211X\006\000\000\000blocksq\020]q\021}q\022(h\005\212\006\000\000\000N^\177X\004"
            "\000\000\000sizeq\023J\000\000\300\000h\011J\000\000\300\000X\005\000\000\000stateq\024X\020\000\000\000"
            "active_allocatedq\025X\006\000\000\000framesq\026]q\027(}q\030(X\004\000\000\000nameq\031X\010\000\000"
            "\000kv_blockq\032X\010\000\000\000filenameq\033X$\000\000\000/opt/example/memory_snapshots/mem.pyq\034"
            "X\004\000\000\000lineq\035K\014u}q\036(h\031X\005\000\000\000churnq\037h\033X$\000\000\000/opt/exampl"
            "e/memory_snapshots/mem.pyq h\035K\020u}q!(h\031X\010\000\000\000<module>q\042h\033X$\000\000\000/opt/"
            "example/memory_snapshots/mem.pyq#h\035K'ueuah\026h\027uaX\015\000\000\000device_tracesq$]q%]q&(}q'(X\006"
            "\000\000\000actionq(X\015\000\000\000segment_allocq)X\004\000\000\000addrq*\212\006\000\000\200\200^\177"
            "h\023J\000\000@\001h\012K\000X\007\000\000\000time_usq+\212\007\230\214/\241U`\006X\017\000\000\000co"
            "mpile_contextq,X\003\000\000\000N/Aq-X\015\000\000\000user_metadataq.X\000\000\000\000q/h\026]q0(}q1("
            "h\031X\007\000\000\000weightsq2h\033X$\000\000\000/opt/example/memory_snapshots/mem.pyq3h\035K\012u}q"
            "4(h\031X\010\000\000\000<module>q5h\033X$\000\000\000/opt/example/memory_snapshots/mem.pyq6h\035K\024"
            "ueu}q7(h(X\005\000\000\000allocq8h*\212\006\000\000\200\200^\177h\023J\000\000 \000h\012K\000h+\212\007"
            "\233\214/\241U`\006h,X\003\000\000\000N/Aq9h.h/h\026h0u}q:(h(h8h*\212\006\000D\304_^\177h\023J\264\320"
            "\004\000h\012K\000h+\212\007\034\236/\241U`\006h,X\003\000\000\000N/Aq;h.h/h\026]q<(}q=(h\031X\005\000"
            "\000\000churnq>h\033X$\000\000\000/opt/example/memory_snapshots/mem.pyq\077h\035K\020u}q@(h\031X\010\000"
            "\000\000<module>qAh\033X$\000\000\000/opt/example/memory_snapshots/mem.pyqBh\035K\026ueu}qC(h(X\016\000"
            "\000\000free_requestedqDh*\212\006\000D\304_^\177h\023J\264\320\004\000h\012K\000h+\212\0079\236/\241"
            "U`\006h,X\003\000\000\000N/AqEh.h/h\026]qF(}qG(h\031X\005\000\000\000churnqHh\033X$\000\000\000/opt/e"
            "xample/memory_snapshots/mem.pyqIh\035K\022uh@eu}qJ(h(X\016\000\000\000free_completedqKh*\212\006\000D"
            "\304_^\177h\023J\264\320\004\000h\012K\000h+\212\0079\236/\241U`\006h,X\003\000\000\000N/AqLh.h/h\026"
            "hFu}qM(h(X\014\000\000\000segment_freeqNh*\212\006\000\000\000`^\177h\023J\000\000\300\000h\012K\000h"
            "+\212\007uu3\241U`\006h,X\003\000\000\000N/AqOh.h/h\026]qP(h\030}qQ(h\031X\010\000\000\000<module>qRh"
            "\033X$\000\000\000/opt/example/memory_snapshots/mem.pyqSh\035K\037ueu}qT(h(hNh*\212\006\000\000\000N^"
            "\177h\023J\000\000\240\001h\012K\000h+\212\007'v3\241U`\006h,X\003\000\000\000N/AqUh.h/h\026hPueaX\022"
            "\000\000\000allocator_settingsqV}qW(X\023\000\000\000expandable_segmentsqX\211X\034\000\000\000garbag"
            "e_collection_thresholdqYG\077\340\000\000\000\000\000\000uX\024\000\000\000external_annotationsqZ]q[("
            "}q\134(X\005\000\000\000stageq]X\005\000\000\000STARTq^X\004\000\000\000nameq_X\007\000\000\000prefil"
            "lq`X\006\000\000\000deviceqaK\000X\007\000\000\000time_usqb\212\007\230\214/\241U`\006u}qc(h]X\003\000"
            "\000\000ENDqdh_h`haK\000hb\212\007\233\214/\241U`\006ueu.",
            1925),
      bytes("\200\004\225R\006\000\000\000\000\000\000}\224(\214\010segments\224]\224}\224(\214\006device\224K\000"
            "\214\007address\224\212\006\000\000\000N^\177\214\012total_size\224J\000\000\300\000\214\016allocated"
            "_size\224J\000\000\300\000\214\013active_size\224J\000\000\300\000\214\016requested_size\224J\000\000"
            "\300\000\214\006stream\224K\000\214\014segment_type\224\214\005large\224\214\017segment_pool_id\224K\000"
            "K\000\206\224\214\015is_expandable\224\211\214\006blocks\224]\224}\224(h\005\212\006\000\000\000N^\177"
            "\214\004size\224J\000\000\300\000h\011J\000\000\300\000\214\005state\224\214\020active_allocated\224\214"
            "\006frames\224]\224(}\224(\214\004name\224\214\010kv_block\224\214\010filename\224\214$/opt/example/m"
            "emory_snapshots/mem.py\224\214\004line\224K\014u}\224(h\031\214\005churn\224h\033\214$/opt/example/me"
            "mory_snapshots/mem.py\224h\035K\020u}\224(h\031\214\010<module>\224h\033\214$/opt/example/memory_snap"
            "shots/mem.py\224h\035K'ueuah\026h\027ua\214\015device_traces\224]\224]\224(}\224(\214\006action\224\214"
            "\015segment_alloc\224\214\004addr\224\212\006\000\000\200\200^\177h\023J\000\000@\001h\012K\000\214\007"
            "time_us\224\212\007\230\214/\241U`\006\214\017compile_context\224\214\003N/A\224\214\015user_metadata"
            "\224\214\000\224h\026]\224(}\224(h\031\214\007weights\224h\033\214$/opt/example/memory_snapshots/mem."
            "py\224h\035K\012u}\224(h\031\214\010<module>\224h\033\214$/opt/example/memory_snapshots/mem.py\224h\035"
            "K\024ueu}\224(h(\214\005alloc\224h*\212\006\000\000\200\200^\177h\023J\000\000 \000h\012K\000h+\212\007"
            "\233\214/\241U`\006h,\214\003N/A\224h.h/h\026h0u}\224(h(h8h*\212\006\000D\304_^\177h\023J\264\320\004"
            "\000h\012K\000h+\212\007\034\236/\241U`\006h,\214\003N/A\224h.h/h\026]\224(}\224(h\031\214\005churn\224"
            "h\033\214$/opt/example/memory_snapshots/mem.py\224h\035K\020u}\224(h\031\214\010<module>\224h\033\214"
            "$/opt/example/memory_snapshots/mem.py\224h\035K\026ueu}\224(h(\214\016free_requested\224h*\212\006\000"
            "D\304_^\177h\023J\264\320\004\000h\012K\000h+\212\0079\236/\241U`\006h,\214\003N/A\224h.h/h\026]\224("
            "}\224(h\031\214\005churn\224h\033\214$/opt/example/memory_snapshots/mem.py\224h\035K\022uh@eu}\224(h("
            "\214\016free_completed\224h*\212\006\000D\304_^\177h\023J\264\320\004\000h\012K\000h+\212\0079\236/\241"
            "U`\006h,\214\003N/A\224h.h/h\026hFu}\224(h(\214\014segment_free\224h*\212\006\000\000\000`^\177h\023J"
            "\000\000\300\000h\012K\000h+\212\007uu3\241U`\006h,\214\003N/A\224h.h/h\026]\224(h\030}\224(h\031\214"
            "\010<module>\224h\033\214$/opt/example/memory_snapshots/mem.py\224h\035K\037ueu}\224(h(hNh*\212\006\000"
            "\000\000N^\177h\023J\000\000\240\001h\012K\000h+\212\007'v3\241U`\006h,\214\003N/A\224h.h/h\026hPuea\214"
            "\022allocator_settings\224}\224(\214\023expandable_segments\224\211\214\034garbage_collection_thresho"
            "ld\224G\077\340\000\000\000\000\000\000u\214\024external_annotations\224]\224(}\224(\214\005stage\224"
            "\214\005START\224\214\004name\224\214\007prefill\224\214\006device\224K\000\214\007time_us\224\212\007"
            "\230\214/\241U`\006u}\224(h]\214\003END\224h_h`haK\000hb\212\007\233\214/\241U`\006ueu.",
            1629),
      bytes("cos\nsystem\n(S'true'\ntR.", 24)};
}

std::vector<std::string> dictionary() {
  return {"\x80\x04",
          "\x8c\x06"
          "action",
          "\x8c\x04"
          "size",
          "\x8c\x06"
          "blocks",
          "\x8c\x0a"
          "total_size",
          "\x8c\x05"
          "state",
          "\x8c\x06"
          "frames",
          "\x8c\x08"
          "filename",
          "\x8c\x07"
          "time_us",
          "}(",
          "](",
          "\x94",
          "h",
          "j",
          "\x8a\x07",
          "u",
          "e",
          "\x93",
          "R",
          "."};
}

}  // namespace

const Target kTarget{run, seeds, dictionary};

}  // namespace llmprof::fuzz
